"""The archive of Python packages that a cluster's executors need, beside their own Python of the same minor version.

A folder of packages for ``PYTHONPATH``, and nothing else: no interpreter, no links, no paths of this machine. So it
works wherever it is unpacked, which a copied virtual environment does not.
"""

from __future__ import annotations

import os
import platform
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Final

from icewright import __version__
from icewright.core.codec import dumps
from icewright.core.errors import InvalidConfiguration, NotAllowed

ROOTS: Final = (
    "arro3-core", "arro3-io", "httpx2", "numpy", "opentelemetry-api", "pandas", "psutil", "pyarrow", "pyroaring",
    "structlog", "xxhash",
)  # fmt: skip
"""What the optimizer's side imports; what these require comes along."""
BROUGHT_BY_SPARK: Final = frozenset({"pyspark", "py4j"})
_OURS: Final = ("icewright", "icewright_spark")
MANIFEST: Final = "icewright-pack.json"
_LEFT_OUT: Final = re.compile(r"(?:^|/)__pycache__/|\.py[co]$|^pyarrow/(?:include|tests|src)/|^numpy/_core/include/")
_REQUIREMENT: Final = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)(?:\s*\[[^\]]*\])?[^;]*(;.*)?\Z", re.DOTALL)
_LEVEL: Final = 1
"""Of compression: libraries shrink to a third, and it takes seconds."""


@dataclass(frozen=True, slots=True)
class PackManifest:
    """What is in an archive: for which Python and machine, and which packages of which version."""

    python: str
    platform: str
    packages: Mapping[str, str]


def pack(target: Path) -> PackManifest:
    """Write the archive; a reader sees no half of it.

    Raises :class:`NotAllowed` when the file is there already, and :class:`InvalidConfiguration` when a package is not
    installed here.
    """
    if target.exists():
        raise NotAllowed(f"{target} is there already", hint="remove it, or name another file")
    found = closure(ROOTS)
    versions = {name: str(one.version) for name, one in sorted(found.items())}
    manifest = PackManifest(
        python=".".join(platform.python_version_tuple()[:2]),
        platform=f"{platform.system()}-{platform.machine()}".lower(),
        packages={"icewright": __version__, **versions},
    )
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    with zipfile.ZipFile(part, "x", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        archive.writestr(MANIFEST, dumps(manifest))
        written: set[str] = set()
        for name, path in files(found):
            if name not in written:
                written.add(name)
                archive.write(path, name)
    part.replace(target)
    return manifest


def closure(roots: tuple[str, ...]) -> dict[str, Distribution]:
    """These distributions and all that they require here, by their normalized names, but for Spark itself."""
    found: dict[str, Distribution] = {}
    waiting = list(roots)
    while waiting:
        name = normalized(waiting.pop())
        if name in found or name in BROUGHT_BY_SPARK:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError as error:
            if name in {normalized(root) for root in roots}:
                raise InvalidConfiguration(
                    f"{name} is not installed here", hint="pip install 'icewright[spark]'"
                ) from error
            continue  # required elsewhere, by a marker for another platform
        waiting.extend(required(found[name]))
    return found


def required(one: Distribution) -> Iterator[str]:
    """The names that a distribution requires, but for those of its extras."""
    for text in one.requires or ():
        parts = _REQUIREMENT.match(text)
        if parts is not None and "extra" not in (parts[2] or ""):
            yield parts[1]


def normalized(name: str) -> str:
    """The one spelling of a distribution's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def files(distributions: Mapping[str, Distribution]) -> Iterator[tuple[str, Path]]:
    """Names in the archive, and the files to be there: those of our packages, and of the distributions."""
    for package in _OURS:
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise InvalidConfiguration(f"{package} is not installed here")
        base = Path(spec.submodule_search_locations[0])
        for path in sorted(base.rglob("*")):
            name = f"{package}/{path.relative_to(base).as_posix()}"
            if path.is_file() and not _LEFT_OUT.search(name):
                yield name, path
    for one in distributions.values():
        for entry in one.files or ():
            name = PurePosixPath(entry).as_posix()
            path = Path(str(one.locate_file(entry)))
            if belongs(name) and path.is_file():
                yield name, path


def belongs(name: str) -> bool:
    """Whether a distribution's file is to be packed: scripts lie outside of the packages, and no path may lead out."""
    return not (name.startswith(("/", "..")) or "/../" in name or _LEFT_OUT.search(name))
