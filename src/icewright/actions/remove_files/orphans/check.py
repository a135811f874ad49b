"""A second opinion on every removal of orphan files, which never trusts the planner.

Nothing of the planner is imported here: what a file must be to go is stated a second time, from the words of the domain
alone, numbers included, and against what the table needs, the listing and the sightings as they are read once more. A
mistake has to be made twice, in two ways of putting it, to reach a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from posixpath import normpath
from typing import Protocol
from unicodedata import normalize
from urllib.parse import unquote
from zlib import crc32

from icewright.core.completeness import Complete
from icewright.model.actions.orphans import FoundFile, Sighting
from icewright.model.actions.remove_files import OrphanFile, RemoveOrphanFiles
from icewright.model.iceberg.locations import Aliases, CanonicalPath
from icewright.model.iceberg.objects import ListedObject
from icewright.model.iceberg.reachable_files import ReachableFile
from icewright.model.iceberg.tables import TableMetadata
from icewright.ownership.model import Place
from icewright.plans.check_table import Wrong

_HOUR_MS = 3_600_000
_FLOOR_MS = 72 * _HOUR_MS
_FLINK_MS = 14 * 24 * _HOUR_MS
_METADATA_MS = 30 * 24 * _HOUR_MS
_METADATA_VERSIONS = 100
_PASSES = 2
_FILES = 50_000
_YEAR_2017_MS = 1_483_228_800_000
_BUDGET_FILES = 10_000
_BUDGET_SHARE = 100
_LISTED_SHARE_MIN = 0.98
_SAMPLE_MAX = 50_000
_SHOWN = 3
_NOT_COUNTED = ("metadata", "version-hint")
_STAGING = re.compile(r"\.spark-staging-[0-9a-f-]{36}")
_UNIQUE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}-[0-9a-f]{32}-|"
    r"\A_SUCCESS\Z|\Av\d+(\.gz)?\.metadata\.json",
    re.ASCII,
)
"""What names have in them that only a writer of tables gives."""


class Needed(Protocol):
    """The files of a table."""

    def files(self) -> Iterable[ReachableFile]:
        """Each of them once."""


@dataclass(frozen=True, slots=True)
class OrphanEvidence:
    """What a removal is held against, read once more.

    ``needed`` is everything that the table needs, as one of the types that only somebody who knows all of it can have;
    the lowest bit of what keeps a file says that it was needed before the listing began. ``gone`` are metadata files
    of tables that lay here before, with their uuids.
    """

    table: TableMetadata
    place: Place
    needed: Complete[Needed]
    listed: Iterable[FoundFile]
    sightings: Iterable[Sighting]
    aliases: Aliases
    quarantine: tuple[str, ...] = ()
    gone: Mapping[CanonicalPath, str] = field(default_factory=dict)
    listing_is_complete: bool = True


def check_orphans(action: RemoveOrphanFiles, evidence: OrphanEvidence) -> tuple[Wrong, ...]:
    """All that is wrong with a removal; empty when it is sound. Of many files that are wrong some are named."""
    found: dict[str, list[str]] = {}
    for code, what in _Checker(action, evidence).violations():
        found.setdefault(code, []).append(what)
    return tuple((code, _sentence(what)) for code, what in found.items())


@dataclass(frozen=True, slots=True)
class _Checker:
    action: RemoveOrphanFiles
    evidence: OrphanEvidence

    def violations(self) -> Iterator[Wrong]:
        action, table = self.action, self.evidence.table
        if action.base_metadata_location != table.metadata_location:
            yield "other-metadata", f"made from {action.base_metadata_location}, at hand is {table.metadata_location}"
        if action.base_snapshot_id != table.current_snapshot_id:
            yield "other-snapshot", f"made from snapshot {action.base_snapshot_id}"
        if action.roots != self.evidence.place.roots or not action.roots:
            yield "other-roots", f"made for {action.roots}, owned are {self.evidence.place.roots}"
        if not self.evidence.listing_is_complete:
            yield "partial-listing", "what was not listed may be the metadata of another table"
        yield from self._figures()
        yield from self._gone()
        for file in action.files:
            yield from self._age(file)
            yield from self._place(file)
            yield from self._name(file)
        yield from self._against_needed()
        yield from self._against_sightings()

    def _figures(self) -> Iterator[Wrong]:
        action = self.action
        if not 0 < len(action.files) <= _FILES:
            yield "number-of-files", f"{len(action.files)} files"
        if len({file.path for file in action.files}) < len(action.files):
            yield "file-twice", "a file is named twice"
        if action.orphan_files < len(action.files) or action.orphan_bytes < action.size_bytes:
            yield "wrong-figures", f"{action.orphan_files} orphans in all, and {len(action.files)} of them are removed"
        beyond = len(action.files) > action.budget_files or action.size_bytes > action.budget_bytes
        beyond = beyond or any(file.doubt is not None for file in action.files)
        if beyond and not action.needs_approval:
            yield "no-approval", "it is beyond the budget, or in doubt, and says that no approval is needed"
        if action.listed_at > action.as_of:
            yield "wrong-order", "ages were computed before the listing began"

    def _gone(self) -> Iterator[Wrong]:
        """Beside a table of before nothing goes unseen, and nothing but by the uuids that somebody named."""
        found, declared = set(self.evidence.gone.values()), {one.uuid for one in self.evidence.place.gone}
        if found - declared or set(self.action.gone) != found:
            yield "gone-table", f"{sorted(found)} lay here before, declared gone are {sorted(declared)}"
        declared_at = max((one.declared_at for one in self.evidence.place.gone), default=-1)
        for file in self.action.files:
            if file.doubt is None and (found or (file.modified_at or 0) <= declared_at):
                yield "no-doubt", f"{file.path} is removed without approval, where another table lay before"

    def _age(self, file: OrphanFile) -> Iterator[Wrong]:
        action, job_ids = self.action, self._job_ids()
        floor_ms = max(_FLINK_MS if job_ids else 0, _FLOOR_MS, action.age_min_ms)
        if action.age_min_ms < (_FLINK_MS if job_ids else _FLOOR_MS):
            yield "age-floor", f"files of {action.age_min_ms} ms are removed"
        if file.modified_at < _YEAR_2017_MS or file.modified_at > action.as_of - floor_ms:
            yield "too-young", f"{file.path} was written at {file.modified_at}"
        if file.first_seen_at <= 0 or file.first_seen_at > action.as_of - floor_ms:
            yield "seen-too-lately", f"{file.path} was first seen at {file.first_seen_at}"
        if file.passes < _PASSES:
            yield "seen-too-seldom", f"{file.path} was seen {file.passes} times"
        if file.size_bytes < 0:
            yield "wrong-size", f"{file.path} has {file.size_bytes} bytes"

    def _place(self, file: OrphanFile) -> Iterator[Wrong]:
        path = self.evidence.aliases.canonical(file.path)
        below = [root for root in self.action.roots if root[-1:] == "/" and path[: len(root)] == root != path]
        if len(below) != 1 or path.endswith("/"):
            yield "not-below-a-root", f"{file.path} is below {len(below)} roots"
            return
        if any(path[: len(folder)] == folder for folder in self.evidence.quarantine):
            yield "in-quarantine", file.path
        partitions = {field.name for spec in self.evidence.table.specs for field in spec.fields}
        for part in _file_of_checksum(path)[len(below[0]) :].split("/"):
            named = part in ("_SUCCESS", "_temporary") or _STAGING.fullmatch(part) is not None
            if part[:1] in (".", "_") and part.partition("=")[0] not in partitions and not named:
                yield "hidden", file.path

    def _name(self, file: OrphanFile) -> Iterator[Wrong]:
        name = _file_of_checksum(file.path).split("/")[-1]
        if file.doubt is None and _UNIQUE.search(name) is None:
            yield "no-doubt", f"{file.path} is removed without approval, and its name is not in Iceberg's pattern"
        if name == "version-hint.text":
            yield "version-hint", file.path
        if any(name[: len(job_id) + 1] == f"{job_id}-" for job_id in self._job_ids()):
            yield "flink-manifest", file.path
        if ".metadata.json" in name.lower() and name == file.path.split("/")[-1]:
            number, current = _number(name), _number(self.evidence.table.metadata_location.split("/")[-1])
            is_late = current is not None and number is not None and number > current - _METADATA_VERSIONS
            is_gone = self.evidence.aliases.canonical(file.path) in self.evidence.gone
            is_kept = number is None or is_late
            if (is_kept and not is_gone) or file.modified_at > self.action.as_of - _METADATA_MS:
                yield "metadata-anchor", file.path

    def _against_needed(self) -> Iterator[Wrong]:
        """Nothing that goes is needed, under whatever name of its storage and whatever spelling."""
        canonical = {self.evidence.aliases.canonical(file.path) for file in self.action.files}
        canonical |= {CanonicalPath(_file_of_checksum(path)) for path in canonical}
        spellings = {_coarse(path) for path in canonical}
        samples = {root: _Sample() for root in self.action.roots}
        needed_bytes, elsewhere = 0, 0
        for needed in self.evidence.needed.value.files():
            needed_bytes += needed.size_bytes or 0
            below = [sample for root, sample in samples.items() if needed.path[: len(root)] == root]
            elsewhere += not below and needed.file_class.value != "version-hint"
            if needed.kept_by % 2 == 1 and needed.file_class.value not in _NOT_COUNTED:
                for sample in below:
                    sample.add(needed.path)
            if needed.path in canonical:
                yield "needed", needed.path
            elif _coarse(needed.path) in spellings:
                yield "like-a-needed-file", needed.path
        if self.action.budget_bytes * _BUDGET_SHARE > needed_bytes or self.action.budget_files > _BUDGET_FILES:
            budget = f"{self.action.budget_files} files and {self.action.budget_bytes} bytes"
            yield "wrong-budget", f"{budget} of a table of {needed_bytes} bytes"
        yield from self._against_listing(samples)
        yield from self._where_nothing_is_known(samples, elsewhere)

    def _where_nothing_is_known(self, samples: Mapping[str, _Sample], elsewhere: int) -> Iterator[Wrong]:
        """Below a root without a needed file nothing goes unseen, and nothing unless all that is needed was found."""
        empty = tuple(root for root, sample in samples.items() if not sample.listed)
        lost = elsewhere + sum(len(sample.paths) - sample.listed for sample in samples.values())
        for file in self.action.files if empty else ():
            if self.evidence.aliases.canonical(file.path).startswith(empty) and (lost or file.doubt is None):
                yield "nothing-known", f"{file.path} is where nothing is needed, and {lost} needed files are elsewhere"

    def _against_listing(self, samples: Mapping[str, _Sample]) -> Iterator[Wrong]:
        """What goes is in the listing as it is said to be, under one name, beside what the table needs."""
        planned = {file.path: file for file in self.action.files}
        summed = {_file_of_checksum(path) for path in planned} - planned.keys()
        names: dict[CanonicalPath, set[str]] = {}
        others_bytes = 0
        for found in self.evidence.listed:
            file = planned.get(found.listed.path)
            for sample in samples.values():
                sample.found(found.path)
            if file is None:
                others_bytes += max(0, found.listed.size_bytes)
                if found.listed.path in summed:
                    yield "checksum-alone", found.listed.path
                continue
            names.setdefault(found.path, set()).add(found.listed.path)
            if _identity(found.listed) != (file.size_bytes, file.modified_at, file.etag, file.version_id):
                yield "not-as-listed", file.path
        if self.action.budget_bytes * _BUDGET_SHARE > others_bytes:
            yield "wrong-budget", f"{self.action.budget_bytes} bytes, where {others_bytes} bytes of others were listed"
        if len(names) != len(planned) or any(len(spelled) > 1 for spelled in names.values()):
            yield "not-listed", f"{len(planned)} files to remove, {len(names)} of them were listed"
        for root, sample in samples.items():
            if sample.listed < _LISTED_SHARE_MIN * len(sample.paths):
                of = f"{len(sample.paths)} files that are needed below {root}"
                yield "views-disagree", f"of {of}, every {sample.step}th of all, {sample.listed} were listed"

    def _against_sightings(self) -> Iterator[Wrong]:
        """What goes was seen before this pass, at the time and as the object that it is said to be."""
        planned = {self.evidence.aliases.canonical(file.path): file for file in self.action.files}
        seen = 0
        for sighting in self.evidence.sightings:
            file = planned.get(sighting.path)
            if file is None:
                continue
            seen += 1
            same = (file.size_bytes, file.modified_at, file.etag, file.version_id)
            if same != (sighting.size_bytes, sighting.modified_at, sighting.etag, sighting.version_id):
                yield "seen-as-another-one", file.path
            if (file.first_seen_at, file.passes) != (sighting.first_seen_at, sighting.passes):
                yield "wrong-sighting", file.path
        if seen != len(planned):
            yield "never-seen", f"{len(planned)} files to remove, {seen} of them are remembered"

    def _job_ids(self) -> set[str]:
        return {one.summary["flink.job-id"] for one in self.evidence.table.snapshots if one.summary.get("flink.job-id")}


@dataclass(slots=True)
class _Sample:
    """Needed paths, and how many of them were listed: all, or every so many of very many, by a number of the path.

    So it is known which of them were listed, in little memory, whatever else is in the listing. ``paths`` says of each
    whether it was.
    """

    step: int = 1
    paths: dict[CanonicalPath, bool] = field(default_factory=dict)

    @property
    def listed(self) -> int:
        return sum(self.paths.values())

    def add(self, path: CanonicalPath) -> None:
        if _drawn(path) % self.step:
            return
        self.paths[path] = False
        if len(self.paths) > _SAMPLE_MAX:
            self.step *= 2
            self.paths = {one: False for one in self.paths if _drawn(one) % self.step == 0}

    def found(self, path: CanonicalPath) -> None:
        if path in self.paths:
            self.paths[path] = True


def _drawn(path: CanonicalPath) -> int:
    """The same number in every process."""
    return crc32(path.encode("utf-8", "surrogatepass"))


def _identity(listed: ListedObject) -> tuple[int, int | None, str | None, str | None]:
    return listed.size_bytes, listed.modified_at, listed.etag, listed.version_id


def _number(name: str) -> int | None:
    """``00012-uuid.metadata.json`` and ``v12.metadata.json``: 12."""
    digits = name.removeprefix("v").split(".")[0].split("-")[0]
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 19 else None  # noqa: PLR2004 - a long


def _file_of_checksum(path: str) -> str:
    """``d/.x.crc``, as Hadoop calls checksums: ``d/x``; any other path as it is."""
    folder, slash, name = path.rpartition("/")
    is_checksum = name[:1] == "." and name[-4:] == ".crc" and len(name) > len("..crc")
    return f"{folder}{slash}{name[1:-4]}" if is_checksum else path


def _coarse(path: CanonicalPath) -> str:
    """One word for all keys that some program may take for the same."""
    key = path.split("://", 1)[-1].partition("/")[2]
    for _ in range(5):
        key = unquote(key)
    folded = normalize("NFKC", normalize("NFKC", key.replace("\\", "/").replace("+", " ")).casefold())
    return normpath("/" + folded.lstrip("/"))


def _sentence(what: list[str]) -> str:
    more = f" and {len(what) - _SHOWN:,} more" if len(what) > _SHOWN else ""
    return "; ".join(one[:200] for one in what[:_SHOWN]) + more
