"""What a server says of a table, in words: how it is, what its owner wants, and why nothing happens to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icewright.client import display as shown
from icewright.core import wording
from icewright.model.policy.policy import Mode, PolicyProblem
from icewright.model.work.why import Stance, Why
from icewright.policy.schema_views import SettingView
from icewright.tables.api_views import TableDocument


class WhyAnswer(Why):
    """A :class:`~icewright.model.work.why.Why` that can be read."""

    __slots__ = ()

    def __repr__(self) -> str:
        """The answer, what holds for the table, and each kind of action that is not off."""
        return "\n".join(wording.safe(line) for line in (f"{self.table}: {self.answer}", *self._lines()))

    def _repr_html_(self) -> str:
        rows = [
            (each.kind.value, each.stance.value.replace("-", " "), " ".join(each.says))
            for each in self.kinds
            if each.stance is not Stance.OFF
        ]
        said = shown.paragraphs(f"{self.table}: {self.answer}", self.says)
        return said + shown.table("", rows, ("action", "how it stands", "why"))

    def _lines(self) -> list[str]:
        lines = list(self.says)
        for each in self.kinds:
            if each.stance is not Stance.OFF:
                lines.append(f"{each.kind.value}: {each.stance.value.replace('-', ' ')}")
                lines.extend(f"  {line}" for line in each.says)
        return lines


@dataclass(frozen=True, slots=True, repr=False)
class Health:
    """How a table is, by what was last observed of it. ``document`` has all figures.

    ``is_well``: it can be looked after, and its plan is to do nothing. ``score`` is from 0 to 100, by the last look.
    """

    document: TableDocument

    @property
    def table(self) -> str:
        """The table's full name."""
        return self.document.summary.name

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong with it and nothing is to be done."""
        summary = self.document.summary
        return summary.problem is None and not (summary.plan is not None and summary.plan.can_apply)

    @property
    def score(self) -> int | None:
        """How healthy it was at its last look, from 0 to 100; None before a look came to a plan."""
        health = self.document.summary.health
        return None if health is None else health.score

    @property
    def says(self) -> str:
        """What is wrong with it, or to be done, in a sentence."""
        summary = self.document.summary
        if summary.problem is not None:
            return summary.problem.text
        return "not planned yet" if summary.plan is None else summary.plan.reason.text

    def rows(self) -> tuple[tuple[str, str], ...]:
        """Everything that is shown, by what it is called."""
        table = self.document.table
        figures = table.figures
        deletes = wording.count(figures.deleted_records, "row") if figures.delete_files else ""
        return (
            ("is well", "yes" if self.is_well else "no"),
            ("because", self.says),
            ("health", "" if self.score is None else f"{self.score} of 100"),
            ("files", f"{figures.data_files:,} ({wording.size(figures.size_bytes)})"),
            ("small files", f"{figures.small_files:,} ({wording.size(figures.small_bytes)})"),
            ("delete files", f"{figures.delete_files:,} ({deletes})" if deletes else "none"),
            ("rows", f"{figures.records:,}"),
            ("partitions", f"{figures.partitions:,}"),
            ("snapshots", f"{table.snapshots:,}"),
            ("done", wording.ratio(figures.optimization_ratio)),
            ("last write", "" if table.written_at is None else wording.instant(table.written_at)),
            ("last optimized", "never" if table.optimized_at is None else wording.instant(table.optimized_at)),
            ("mode", table.mode.value),
            ("as of", wording.instant(self.document.summary.observed_at)),
        )

    def __repr__(self) -> str:
        """All of it, a line each."""
        return shown.text(self.table, self.rows())

    def _repr_html_(self) -> str:
        return shown.table(self.table, (row for row in self.rows() if row[1]))


@dataclass(frozen=True, slots=True, repr=False)
class TablePolicy:
    """What a table's owner wants: every setting in effect, where it comes from, and what cannot be used."""

    table: str
    mode: Mode
    settings: Mapping[str, SettingView]
    problems: tuple[PolicyProblem, ...]

    def __getitem__(self, key: str) -> str | None:
        """The value of one setting, such as ``icewright.mode``. Raises ``KeyError`` where there is no such setting."""
        return self.settings[key].value

    def __repr__(self) -> str:
        """What is set, and what cannot be used."""
        rows = [(key, f"{value} ({origin})") for key, value, origin in self._set()]
        return shown.text(f"{self.table}: mode {self.mode.value}", rows)

    def _repr_html_(self) -> str:
        return shown.table(f"{self.table}: mode {self.mode.value}", self._set(), ("property", "value", "from"))

    def _set(self) -> list[tuple[str, str, str]]:
        problems = [(one.key, one.value, f"{one.origin}: cannot be used, {one.problem}") for one in self.problems]
        given = [(one.key, one.value or "-", one.origin) for one in self.settings.values() if one.origin != "default"]
        return [*problems, *given, ("all others", "as they are", "default")]
