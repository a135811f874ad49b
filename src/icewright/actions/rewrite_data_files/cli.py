"""What is shown of rewrites of data files and of manifests."""

from __future__ import annotations

from icewright.actions.rewrite_data_files.layouts import lookups
from icewright.model.actions.actions import RewriteFigures
from icewright.model.actions.rewrite_manifests import Opened, RewriteManifestsPrediction
from icewright.model.plans.plans import Estimate, RewritePrediction
from icewright.plans.evidence.measures import Measured
from icewright.plans.views import PlanView, TaskView
from icewright.terminal import figures as text


def rewrite_pairs(said: RewritePrediction, view: PlanView) -> list[tuple[str, str]]:
    """What a rewrite of data files would bring."""
    work = f"{said.input_files:,} files ({text.size(said.input_bytes)}, {said.records:,} rows)"
    return [
        ("files", f"{said.data_files_before:,} -> {said.data_files_after:,}"),
        ("work", f"{work} become {said.output_files:,}"),
        *_before_and_after(view, said),
    ]


def _before_and_after(view: PlanView, said: RewritePrediction) -> list[tuple[str, str]]:
    """What a rewrite takes: by whom, in which order, and the estimates, which say that they are."""
    rows = [
        ("level", ", ".join(action.level.value for action in view.actions if isinstance(action, RewriteFigures))),
        ("order", said.layout or ""),
        ("done by", ", ".join(f"{name} ({text.count(n, 'group')})" for name, n in view.executors.items())),
    ]
    if said.estimate is not None:
        guess = said.estimate
        takes = f"about {text.about(guess.cpu_ms)} of CPU, {text.size(guess.output_bytes)} written (estimates)"
        rows += [
            ("takes", takes),
            ("written", guess.output_reason.text),
            ("risk", f"{guess.risk}: {guess.risk_reason.text}"),
        ]
        rows += [("lookup", f"{lookups.said(one)} (estimate)") for one in guess.lookups]
    return rows


def rewrite_work(said: RewritePrediction) -> str:
    """What is to be done, in a few words."""
    return f"{said.input_files:,} files ({text.size(said.input_bytes)}) become {said.output_files:,}"


def rewrite_cells(
    task: TaskView, said: RewritePrediction, action: RewriteFigures, measured: Measured
) -> list[tuple[str, str, str]]:
    """What the plan predicted and what the attempts measured, side by side."""
    estimate = said.estimate
    left = measured.groups_conflicted + measured.groups_failed
    rows = [
        ("groups", text.number(action.groups), text.number(measured.groups_committed)),
        ("groups left: conflicts", "", text.number(measured.groups_conflicted) if left else ""),
        ("groups left: failures", "", text.number(measured.groups_failed) if left else ""),
        ("files replaced", text.number(said.input_files), text.number(measured.input_files)),
        ("files written", text.number(said.output_files), text.number(measured.output_files)),
        ("bytes replaced", text.size(said.input_bytes), text.size(measured.input_bytes)),
        (
            "bytes written",
            "" if estimate is None else text.size(estimate.output_bytes),
            text.size(measured.output_bytes),
        ),
        *_lookup_cells(task, estimate),
        ("rows read", text.number(said.records), text.number(measured.records + measured.deleted_records)),
        ("rows deleted", "", text.number(measured.deleted_records)),
        ("CPU", "" if estimate is None else text.seconds(estimate.cpu_ms), text.seconds(measured.cpu_ms)),
        ("of which proof", "", text.seconds(measured.proof_cpu_ms) if measured.proof_cpu_ms else ""),
        ("time", "", text.seconds(measured.wall_ms)),
        ("peak memory of a worker", "", text.size(measured.peak_memory_bytes)),
        ("bytes read in all", "", text.size(measured.read_bytes)),
        ("bytes wasted", "", text.size(measured.wasted_bytes)),
    ]
    return [(name, predicted or "-", found) for name, predicted, found in rows if found]


def _lookup_cells(task: TaskView, estimate: Estimate | None) -> list[tuple[str, str, str]]:
    """In how many of the new files one value of each column of the layout may be, on the mean and at worst."""
    outcome = task.outcome
    found = {} if outcome is None else outcome.reason.figures
    rows = []
    for number, said in enumerate(() if estimate is None else estimate.lookups, start=1):
        mean, worst = found.get(f"lookup_{number}_mean"), found.get(f"lookup_{number}_files")
        measured = "-" if mean is None or worst is None else f"{mean} ({worst} at most)"
        rows.append((f"files with one {said.column}", f"{said.mean_after} ({said.files_after:,} at most)", measured))
    return rows


def manifests_pairs(said: RewriteManifestsPrediction, _view: PlanView) -> list[tuple[str, str]]:
    """What a rewrite of manifests would bring."""
    return [
        ("manifests", f"{said.manifests_before:,} -> {said.manifests_after:,}"),
        ("bytes", f"{text.size(said.bytes_before)} -> {text.size(said.bytes_after)}"),
        ("work", f"{text.number(said.entries)} entries"),
        *[("opened", _opened(each)) for each in said.opened],
    ]


def _opened(said: Opened) -> str:
    """How many manifests a query for one partition opens."""
    where = f"{said.belongs_to.content.value} of spec {said.belongs_to.spec_id}"
    worst = f"at worst {said.worst_before:,} -> {said.worst_after:,}"
    return f"{where}: {said.mean_before:.1f} -> {said.mean_after:.1f} by a query for one partition, {worst}"
