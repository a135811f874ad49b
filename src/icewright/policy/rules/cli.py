"""``icewright policy apply|test|history|rollback|schema``: policies as files in git, tested, compared and applied."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from icewright.core import wording
from icewright.core.codec import from_json
from icewright.core.errors import Conflict, Rejected
from icewright.model.iceberg.tables import Json
from icewright.model.policy.policies import NO_REVISION, NewRevision, Policies, PolicyRevision, Rule
from icewright.model.policy.policy import PolicyProblem
from icewright.model.policy.resource_groups import ResourceGroup
from icewright.policy.groups.precedence import GroupSource, GroupWin, applied_source, caps_said, optimizers_said
from icewright.policy.rules.case_files import read_cases
from icewright.policy.rules.cases import CaseResult, PolicyTest, Said, TestedGroup, policy_test, run_case
from icewright.policy.rules.difference import PolicyDifference
from icewright.policy.rules.file_schema import policy_schema
from icewright.policy.rules.files import PolicyFiles, read_policies, read_policy_files
from icewright.policy.rules.named_rules import RuleIndex
from icewright.terminal import figures as text
from icewright.terminal.cli import FINE, FOUND, Terminal
from icewright.terminal.invocation import (
    Cursor,
    Invocation,
    Limit,
    Yes,
    api_command,
    command,
    logged_in,
    table_name,
)
from icewright.terminal.tables import headings

Paths = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Policy files, or folders of them.")]
Files = Annotated[
    list[Path] | None, typer.Option("--file", metavar="PATH", help="Policy files, or folders of them, not yet applied.")
]
Expect = Annotated[
    list[Path] | None, typer.Option("--expect", metavar="FILE", help="Cases: which settings which tables should have.")
]
Note = Annotated[str, typer.Option("--note", help="Why, for the history: a commit, a ticket.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who applies it; else who is logged in.")]
IfRevision = Annotated[
    int | None,
    typer.Option("--if-revision", metavar="N", help="Only while revision N is the latest, whose difference you saw."),
]

_SETTINGS: Final = headings("setting", "value", "from", "because", below=("because", "value"), drop=("from",))
_CHANGES: Final = headings("table", "setting", "before", "after", "by", drop=("by",), below=("before:", "after:"))
_RULES: Final = headings("", "rule", "what", "#tables", below=("what",))
_HISTORY: Final = headings("#revision", "applied", "by", "#rules", "note", below=("note",))
_SIGNS: Final = {"added": "+", "changed": "~", "removed": "-"}


@api_command
def apply(
    invocation: Invocation,
    paths: Paths,
    *,
    yes: Yes = False,
    if_revision: IfRevision = None,
    note: Note = "",
    by: By = None,
) -> None:
    """Show what policy files would change, and with --yes put them in place of all policies that are applied.

    Exit status 1 when there is something to apply and --yes is missing.
    """
    _change(invocation, read_policies(paths), _Wish(yes, if_revision, note, by))


@api_command
def rollback(
    invocation: Invocation,
    revision: Annotated[int, typer.Argument(metavar="REVISION", min=0, help="The revision; 0 is no policies at all.")],
    *,
    yes: Yes = False,
    if_revision: IfRevision = None,
    note: Note = "",
    by: By = None,
) -> None:
    """Show what going back to a revision would change, and with --yes apply it again, as a new revision.

    Exit status 1 when there is something to apply and --yes is missing.
    """
    policies = from_json(PolicyRevision, invocation.client.policies(revision)).policies
    _change(invocation, policies, _Wish(yes, if_revision, note or f"rollback to revision {revision}", by))


@api_command
def history(invocation: Invocation, *, limit: Limit = 20, cursor: Cursor = None) -> None:
    """List what was applied, newest first."""
    none = "no policies were applied yet"
    invocation.print_page(
        invocation.client.policy_revisions(limit=limit, cursor=cursor),
        lambda one: one,
        _HISTORY,
        _history_cells,
        none=none,
    )


def _history_cells(one: Json) -> tuple[str, ...]:
    return str(one["number"]), text.instant(one["applied_at"]), one["applied_by"], str(one["rules"]), one["note"]


def schema() -> None:
    """Print the JSON Schema of policy files, for editors and CI."""
    typer.echo(json.dumps(policy_schema(), indent=2))


@command
def which_wins(
    invocation: Invocation,
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="The table; may be left out with --expect.")
    ] = None,
    *,
    files: Files = None,
    expect: Expect = None,
    every: Annotated[bool, typer.Option("--all", help="Also settings that are not set.")] = False,
) -> None:
    """Say which rule wins for each setting of a table, and why; with --file, by files that are not applied yet.

    Cases of --expect are tested without a server or a catalog, as CI does. Exit status 1 when one fails, and when
    something cannot be used.
    """
    if table is None and not expect:
        raise Rejected("nothing to test", hint="name a table, or cases: --expect FILE")
    policies = read_policy_files(files) if files else None
    cases = [case for file in expect or () for case in read_cases(file)]
    rules = _rules(invocation, policies)
    results = [run_case(case, rules) for case in cases]
    tested = None if table is None else _tested(invocation, table, policies)
    if invocation.as_json:
        invocation.terminal.document({"table": tested, "cases": results})
    else:
        _print_test(invocation.terminal, tested, results, every=every)
    wrong = (tested is not None and not tested.is_usable) or not all(result.passed for result in results)
    raise typer.Exit(FOUND if wrong else FINE)


def print_rules(terminal: Terminal, revision: PolicyRevision) -> None:
    """A revision of the policies, rule by rule."""
    if revision.number:
        by = f"{text.instant(revision.applied_at)} by {revision.applied_by}"
        terminal.pairs([("revision", str(revision.number)), ("applied", by), ("note", revision.note)])
    else:
        terminal.say("revision 0: no policies are applied")
    for rule in revision.policies.rules:
        terminal.say()
        terminal.say(rule.name, style="bold")
        wanted = [*([] if rule.match.owner is None else [f"owner: {rule.match.owner}"])]
        wanted += [f"{key}: {value}" for key, value in rule.match.properties.items()]
        terminal.pairs(
            [
                ("tables", ", ".join(rule.match.tables)),
                ("where", ", ".join(wanted)),
                ("priority", str(rule.priority)),
                ("enforce", rule.enforce.value),
                *rule.settings.items(),
                ("note", rule.note),
            ]
        )


@dataclass(frozen=True, slots=True)
class _Wish:
    """How somebody wants policies to be applied."""

    yes: bool
    if_revision: int | None
    note: str
    by: str | None


def _change(invocation: Invocation, policies: Policies, wish: _Wish) -> None:
    client = invocation.client
    difference = from_json(PolicyDifference, client.preview_policies(policies))
    if wish.if_revision is not None and wish.if_revision != difference.revision:
        said = f"the policies are at revision {difference.revision} now, not at {wish.if_revision}"
        raise Conflict(said, hint="look at the difference again")
    if not invocation.terminal.as_json:
        _print_difference(invocation.terminal, difference)
    done = None
    if wish.yes and not difference.is_empty:
        new = NewRevision(policies, wish.by or logged_in(), wish.note)
        done = from_json(PolicyRevision, client.apply_policies(new, difference.revision))
    if invocation.terminal.as_json:
        invocation.terminal.document({"difference": difference, "applied": None if done is None else done.number})
    elif done is not None:
        invocation.terminal.say(f"Applied as revision {done.number}.", style="bold")
    elif not difference.is_empty:
        said = f"Nothing has been changed yet: add --yes --if-revision {difference.revision} to do exactly this."
        invocation.terminal.say(said, style="bold")
    raise typer.Exit(FOUND if done is None and not difference.is_empty else FINE)


def _print_difference(terminal: Terminal, difference: PolicyDifference) -> None:
    if difference.is_empty:
        terminal.say(f"Nothing to apply: revision {difference.revision} says the same already.")
        return
    for warning in difference.warnings:
        terminal.say(f"{warning.code}: {warning.text}", style="bold red")
    if difference.warnings:
        terminal.say()
    rows = [
        (_SIGNS[one.what], one.name, ", ".join((one.what, *one.fields)), f"{one.tables:,}") for one in difference.rules
    ]
    terminal.table(_RULES, rows)
    for group in difference.groups:
        said = ", ".join((group.what, *group.fields))
        terminal.say(f"{_SIGNS[group.what]} resource group {group.name}: {said}")
    terminal.say()
    known = wording.count(difference.tables_known, "table")
    terminal.say(
        f"{difference.tables_changed:,} of {known} would have other settings than by revision {difference.revision}."
    )
    if not difference.tables:
        return
    terminal.pairs([(key, wording.count(count, "table")) for key, count in difference.settings.items()])
    terminal.say()
    changes = [(table.table, change) for table in difference.tables for change in table.changes]
    cells = [(name, c.key, _shown(c.before), _shown(c.after), c.after_origin) for name, c in changes]
    terminal.table(_CHANGES, cells)
    left = difference.tables_changed - len(difference.tables)
    if left:
        terminal.say(f"... and {wording.count(left, 'more table', 'more tables')}")


def _rules(invocation: Invocation, files: PolicyFiles | None) -> Sequence[Rule]:
    """The rules to test: of files above those of the configuration, or what is in effect."""
    return RuleIndex(invocation.rules if files is None else (*files.policies.rules, *invocation.config.rules))


def _tested(invocation: Invocation, table: str, files: PolicyFiles | None) -> PolicyTest:
    from icewright.ownership.offline import OfflineCatalogs  # noqa: PLC0415 - `--help` stays quick

    config, applied = invocation.config, invocation.applied
    name = table_name(config, table)
    found = OfflineCatalogs(config).catalog(name.catalog).load(name)
    where = "the configuration" if config.path is None else str(config.path)
    configured = GroupSource(where, config.groups, is_configuration=True)
    now = applied or NO_REVISION
    present = Said(_rules(invocation, None), (applied_source(now.number, now.policies.groups), configured))
    revision = None if applied is None else applied.number
    if files is None:
        return policy_test(found, revision, present)
    written = GroupSource("the files", files.policies.groups, places=files.group_places)
    return policy_test(found, revision, Said(_rules(invocation, files), (written, configured)), present)


def _print_test(terminal: Terminal, tested: PolicyTest | None, results: list[CaseResult], *, every: bool) -> None:
    if tested is not None:
        by = "the files" if tested.from_files else _applied_text(tested)
        terminal.pairs(
            [("table", tested.table), ("by", by), ("before", _applied_text(tested) if tested.from_files else "")]
        )
        terminal.say()
        terminal.table(_SETTINGS, list(_test_rows(tested, every=every)))
        _say_group(terminal, tested.group)
        _print_problems(terminal, tested.problems)
    for result in results:
        if result.passed:
            terminal.say(f"passed  {result.table}")
            continue
        terminal.say(f"FAILED  {result.table}  {result.place}", style="red")
        for failure in result.failures:
            terminal.say(f"  {failure.key}: expected {failure.expected}, found {failure.found} ({failure.origin})")
        _print_problems(terminal, result.problems)


def _test_rows(tested: PolicyTest, *, every: bool) -> Iterator[tuple[str, ...]]:
    for one in tested.settings:
        if one.win.is_default and one.before.is_default and not every:
            continue
        value = _shown(one.win.value)
        value = f"{_shown(one.before.value)} -> {value}" if one.differs else value
        origin = one.win.origin if one.win.pattern is None else f"{one.win.origin} ({one.win.pattern})"
        over = "; ".join(f"not {other.value} of {other.origin}: {other.why}" for other in one.win.over)
        yield one.win.key, value, origin, over or ("not set" if one.win.is_default else "not set elsewhere")


def _print_problems(terminal: Terminal, problems: tuple[PolicyProblem, ...]) -> None:
    for problem in problems:
        terminal.say(f"cannot be used: {problem.origin}, {problem.key}: {problem.problem}", style="red")


def _applied_text(tested: PolicyTest) -> str:
    if tested.revision is None:
        return "the configuration alone: no server was asked"
    return f"revision {tested.revision} and the configuration"


def _shown(value: Any) -> str:
    return "-" if value is None else str(value)


def _say_group(terminal: Terminal, tested: TestedGroup) -> None:
    """The group that counts for a table, and what was before where that is another one."""
    win = tested.win
    terminal.say()
    pairs = [("resource group", f"{win.name}, from {win.named_by}"), *_definition(win)]
    if tested.differs:
        pairs += [("before", f"{tested.before.name}, from {tested.before.named_by}"), *_definition(tested.before)]
    terminal.pairs(pairs)
    if win.group is None:
        terminal.say(f"cannot be used: resource group {win.name}: {win.because}", style="red")


def _definition(win: GroupWin) -> list[tuple[str, str]]:
    if win.group is None:
        return [("defined", "nowhere")]
    over = "; ".join(f"not {other.origin}: {other.why}" for other in win.over)
    own = "without caps of its own"
    if win.tenant_caps is not None:
        own = f"of these at most: {caps_said(win.tenant_caps)}"
    return [
        ("defined", f"{win.defined_by} ({over or win.because})"),
        ("caps", caps_said(win.group)),
        ("large queue", wording.ratio(win.group.large_share)),
        ("optimizers", optimizers_said(win.group)),
        ("windows", _windows(win.group)),
        ("owner", f"{win.tenant}, {own}" if win.tenant else "none"),
    ]


def _windows(group: ResourceGroup) -> str:
    said = [f"{one.cron} ({one.time_zone}) for {wording.duration(one.duration_ms)}" for one in group.windows]
    return "; ".join(said) or "none: tasks start at any time"
