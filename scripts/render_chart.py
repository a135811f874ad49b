"""Renders the Helm chart for its tests: `python -m scripts.render_chart`, after each change of `deploy/helm`.

Tests read what is rendered and need no Helm: they compare the digest of the chart with the one that stands in it.
Needs `helm` on the path (`go install helm.sh/helm/v3/cmd/helm@v3.18.6`).
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHART = ROOT / "deploy/helm/icewright"
CASES = ROOT / "tests/deploy/charts"
KUBERNETES = "1.34.0"


def digest(values: Path) -> str:
    """The digest of all files of the chart, and of the values that it is rendered with."""
    found = hashlib.sha256()
    for path in [*sorted(path for path in CHART.rglob("*") if path.is_file()), values]:
        found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def rendered_file(values: Path) -> Path:
    """Where the manifests for these values are kept."""
    return values.with_name(values.name.replace(".values.yaml", ".yaml"))


def heading(values: Path) -> str:
    """The first line of rendered manifests."""
    return f"# {digest(values)}: written by `python -m scripts.render_chart`, not by hand.\n"


def main() -> int:
    """Render each case."""
    for values in sorted(CASES.glob("*.values.yaml")):
        command = ["helm", "template", "lake", str(CHART), "--namespace", "icewright", "--values", str(values)]
        done = subprocess.run(  # noqa: S603 - the program that its user has
            [*command, "--kube-version", KUBERNETES], check=True, capture_output=True, text=True
        )
        rendered_file(values).write_text(heading(values) + done.stdout, encoding="utf-8")
        sys.stdout.write(f"wrote {rendered_file(values).relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
