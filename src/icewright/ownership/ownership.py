"""Whose place is whose: over all tables of all catalogs, what each one alone owns, or why it owns nothing.

Whatever cleans up below the location of one table takes the files of every other one there for garbage. That has
destroyed tables by the hundred, and every tool that removes orphan files can do it, whoever runs it. So it is said
before anything is deleted by anyone, and nothing is deleted where it is not known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from icewright.core import wording
from icewright.core.completeness import Gap, Gaps, Known
from icewright.core.reasons import Reason
from icewright.model.iceberg.locations import storage_and_key
from icewright.model.iceberg.names import TableName
from icewright.ownership.location_rules import PlaceRules
from icewright.ownership.model import Claim, Missing, Place
from icewright.ownership.overlaps import borrowers, overlaps, same, some

_NAMED_MAX: Final = 3
_PARTS_MIN: Final = 2
"""Folders below a bucket that a place must have: whatever is nearer to it is many tables' place, if not everybody's."""
_HADOOP: Final = frozenset({"hdfs", "webhdfs", "swebhdfs", "viewfs"})
_AZURE: Final = frozenset({"abfs", "abfss", "wasb", "wasbs"})
_OF_SEVERAL_NAMES: Final = _HADOOP | _AZURE | {"file"}
_NOT_NAMED: Final[frozenset[str]] = frozenset()

_MeantBy = Mapping[TableName, frozenset[TableName]]


@dataclass(frozen=True, slots=True)
class NamedFinding:
    """A finding that names other tables, between the two halves of its text."""

    code: str
    before: str
    others: frozenset[TableName]
    after: str

    def reason(self, is_seen: Callable[[TableName], bool] = lambda _: True) -> Reason:
        """The finding in words, for somebody who may see these tables."""
        return Reason(self.code, f"{self.before}{_words(self.others, is_seen)}{self.after}")


@dataclass(frozen=True, slots=True)
class Ownership:
    """All claims together, judged. Made by :func:`ownership`."""

    claims: Mapping[TableName, Claim]
    findings: Mapping[TableName, tuple[Reason, ...]]
    """Why a table owns nothing, for those of which that is so."""
    unplaced: tuple[Missing, ...]
    """Claims with a location that names no place."""
    straying: frozenset[str]
    """Catalogs with a table outside their places: where the rest of their tables lie is then anybody's guess."""
    rules: PlaceRules
    missing: Mapping[str, tuple[Missing, ...]] = field(default_factory=dict)
    """Whose places are not known, by catalog."""
    beside: Mapping[TableName, tuple[NamedFinding, ...]] = field(default_factory=dict)
    """The last of the findings, where they name other tables."""
    foreign: frozenset[TableName] = frozenset()
    """Tables of other formats: which files in their places they need is not known."""

    def without(self, missing: Iterable[Missing]) -> Ownership:
        """The same claims, where these tables and catalogs are not known: in place of others that were not."""
        by_catalog: dict[str, list[Missing]] = defaultdict(list)
        for one in (*missing, *self.unplaced):
            by_catalog[one.catalog].append(one)
        return replace(self, missing={catalog: tuple(found) for catalog, found in by_catalog.items()})

    def place(self, name: TableName) -> Known[Place]:
        """What a table alone owns. Complete if and only if nobody whose places are not known may be there, too."""
        gaps = Gaps()
        found = self.claims.get(name)
        if found is None:
            gaps.add(Gap(str(name), Reason("unclaimed", "nothing is known of its places; it has not been looked at")))
            return gaps.judge(Place(name, None, (), ()))
        findings = self.findings.get(name, ())
        owned, not_ours = self._shares(found)
        for catalog, missing in self.missing.items():
            if self._may_be_at(catalog, found.roots):
                for one in missing:
                    gaps.add(Gap(one.what, one.reason))
        return gaps.judge(Place(name, found.uuid, () if findings else owned, findings, not_ours))

    def users(self, uuid: str, folders: Iterable[str]) -> Known[frozenset[TableName]]:
        """Tables of a uuid, and those with a place or files at, above or below one of these folders, by any name of it.

        Complete only where all tables of all catalogs are known, wherever they may lie: files of a table that is gone
        are needed by whoever has registered it anew, in any place.
        """
        gaps = Gaps()
        for missing in self.missing.values():
            for one in missing:
                gaps.add(Gap(one.what, one.reason))
        below = tuple(lookalike(folder, _NOT_NAMED) for folder in folders)
        above = {folder[: end + 1] for folder in below for end, letter in enumerate(folder) if letter == "/"}

        def is_there(place: str) -> bool:
            alike = lookalike(place, _NOT_NAMED)
            return alike in above or alike.startswith(below)

        wanted = uuid.strip().lower()
        found = (
            one
            for one in self.claims.values()
            if (one.uuid == wanted and not one.is_gone)
            or (one.uuid != wanted and any(map(is_there, one.roots + one.reaches)))
        )
        names = frozenset(one.name for one in found)
        for name in sorted(names & self.foreign):
            gaps.add(Gap(str(name), Reason("other-format", "it is no Iceberg table: any file in its place may be its")))
        return gaps.judge(names - self.foreign)

    def _shares(self, found: Claim) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The roots to be owned, and the places of files that are not ours to delete.

        A place that only a property names is a stranger's word: without an administrator's, it is owned by nobody.
        """
        if found.name.catalog in self.rules.allowed:
            return found.roots, found.reaches
        own = () if found.location is None else (found.location,)
        return own, (*(root for root in found.roots if root != found.location), *found.reaches)

    def _may_be_at(self, catalog: str, places: Sequence[str]) -> bool:
        allowed = self.rules.allowed.get(catalog)
        if allowed is None or catalog in self.straying:
            return True
        return any(place.startswith(allowed) or any(a.startswith(place) for a in allowed) for place in places)


def ownership(
    claims: Iterable[Claim],
    missing: Iterable[Missing] = (),
    rules: PlaceRules | None = None,
    lost: Collection[TableName] = (),
    others: Iterable[Claim] = (),
) -> Ownership:
    """Judge all claims. Each name may lay claim once; of several, the last one counts.

    ``lost`` are tables that may be anywhere no more, by an administrator's word; ``others`` are claims of tables of
    other formats.
    """
    rules = rules or PlaceRules()
    by_name = {one.name: one for one in claims}
    foreign = {one.name: one for one in others if one.name not in by_name}
    shown: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for one in by_name.values():
        if one.uuid is not None and not one.is_gone:
            shown[one.uuid] += (*one.roots, *one.reaches)
    by_name = {name: one for name, one in by_name.items() if not _was_renamed(one, shown)}
    straying = _straying(by_name.values(), rules)
    by_name |= foreign
    reserved = {place: lookalike(place, _NOT_NAMED) for place in rules.reserved}
    found: dict[TableName, list[Reason]] = defaultdict(list)
    for one in by_name.values():
        found[one.name].extend(_by_itself(one, rules, reserved))
    beside: dict[TableName, list[NamedFinding]] = defaultdict(list)
    for name, naming in (*_together(by_name.values(), rules), *_held_among_tables(by_name.values(), rules)):
        found[name].append(naming.reason())
        beside[name].append(naming)
    unplaced = (
        Missing(c.name.catalog, str(c.name), _no_place(at))
        for c in by_name.values()
        for at in c.unplaced
        if c.name not in lost
    )
    judged = Ownership(
        claims=by_name,
        findings={name: tuple(reasons) for name, reasons in found.items() if reasons},
        unplaced=tuple(unplaced),
        straying=straying,
        rules=rules,
        beside={name: tuple(ones) for name, ones in beside.items()},
        foreign=frozenset(foreign),
    )
    return judged.without(missing)


def _was_renamed(one: Claim, shown: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a table that is gone is there under another name, and has claimed all that it did; not a copy of it."""
    if not one.is_gone or one.uuid is None or one.uuid not in shown:
        return False
    return all(place.startswith(shown[one.uuid]) for place in (*one.roots, *one.reaches))


def _straying(claims: Iterable[Claim], rules: PlaceRules) -> frozenset[str]:
    return frozenset(
        one.name.catalog
        for one in claims
        if not all(place.startswith(rules.allowed.get(one.name.catalog, ())) for place in (*one.roots, *one.reaches))
    )


def _by_itself(one: Claim, rules: PlaceRules, reserved: Mapping[str, str]) -> list[Reason]:
    """What is wrong with one claim whatever the others are. ``reserved`` are icewright's own, as :func:`lookalike`."""
    found = [_no_place(location) for location in one.unplaced]
    for location in one.ambiguous:
        text = f"its location {wording.quoted(location)} may be another folder, too; spell it without // and .."
        found.append(Reason("ambiguous-location", text))
    for place in one.linked:
        text = f"it has files in {wording.quoted(place)}, a link into its own place: these have two names; rewrite them"
        found.append(Reason("linked-place", text))
    if one.uuid is None:
        text = "it has no uuid, so it cannot be distinguished from another table of its name; any commit gives it one"
        found.append(Reason("no-uuid", text))
    if one.is_clone:
        text = "it was made by Spark's procedure snapshot and has files of its source; migrate or drop it"
        found.append(Reason("clone", text))
    elif not one.gc_enabled:
        text = "gc.enabled=false says that others need its files; set it to true once none does"
        found.append(Reason("gc-disabled", text))
    for root in one.roots:
        found.extend(_of_root(one.name.catalog, root, rules, reserved))
    return found


def _of_root(catalog: str, root: str, rules: PlaceRules, reserved: Mapping[str, str]) -> Iterable[Reason]:
    parts = [part for part in storage_and_key(root)[1].split("/") if part]
    if len(parts) < _PARTS_MIN:
        text = (
            "is a bucket, or right below one, where much else may be; give the table a folder of its own further down"
        )
        yield Reason("shallow-root", f"its place {wording.quoted(root)} {text}")
    allowed = rules.allowed.get(catalog)
    if allowed is not None and not root.startswith(allowed):
        text = "is below none of the roots that the configuration allows the catalog; add it there, or move the table"
        yield Reason("root-not-allowed", f"its place {wording.quoted(root)} {text}")
    alike = lookalike(root, _NOT_NAMED)
    for own, own_alike in reserved.items():
        if alike.startswith(own_alike) or own_alike.startswith(alike):
            text = f"overlaps icewright's own {wording.quoted(own)}; configure another one"
            yield Reason("reserved-place", f"its place {wording.quoted(root)} {text}")


def _together(claims: Iterable[Claim], rules: PlaceRules) -> Iterable[tuple[TableName, NamedFinding]]:
    """What is wrong with claims beside others."""
    claims = tuple(claims)
    exact = overlaps(_owners(claims, str))
    yield from _reasons(
        exact,
        "shared-location",
        "its location overlaps that of {}: who removes orphan files of one deletes the other's; "
        "give each a place of its own",
    )
    forms = [partial(lookalike, storages=storages) for storages in _readings(rules.storages)]
    alike = _merged(overlaps(_owners(claims, form)) for form in forms)
    yield from _reasons(
        {name: others for name, others in alike.items() if name not in exact},
        "undeclared-alias",
        "its location overlaps that of {} if their storages are one; "
        "declare them as aliases, or name both as roots if they are two",
    )
    yield from _reasons(
        _merged(borrowers(_owners(claims, form), _owners(claims, form, reaching=True)) for form in forms),
        "lends-files",
        "{} has files in its place, so that what is garbage to one is not to the other; "
        "rewrite those files from there to the other's own place",
    )
    yield from _reasons(
        same((one.uuid, one.name) for one in claims if one.uuid is not None and not one.is_gone),
        "shared-uuid",
        "it is also known as {}: who expires snapshots under one name breaks the other; drop all names but one, "
        "without purge",
    )


def _held_among_tables(claims: Iterable[Claim], rules: PlaceRules) -> Iterable[tuple[TableName, NamedFinding]]:
    """Tables whose removed files would wait where another table is: who cleans up there takes what can come back.

    Nor is anything purged from a quarantine that another table has files in: somebody took them for their own.
    """
    alike = {place: lookalike(place, _NOT_NAMED) for places in rules.held.values() for place in places}
    if not alike:
        return
    taken: dict[str, set[TableName]] = defaultdict(set)
    for one in claims:
        roots = [lookalike(root, _NOT_NAMED) for root in one.roots]
        inside = [*roots, *(lookalike(place, _NOT_NAMED) for place in one.reaches)]
        for place, form in alike.items():
            if form.startswith(tuple(roots)) or any(each.startswith(form) for each in inside):
                taken[place].add(one.name)
    if not taken:
        return
    for one in claims:
        storages = {storage_and_key(lookalike(root, _NOT_NAMED))[0] for root in one.roots}
        for place in rules.held.get(one.name.catalog, ()):
            others = frozenset(taken.get(place, set()) - {one.name})
            if others and storage_and_key(alike[place])[0] in storages:
                before = f"removed files would wait in {wording.quoted(place)}, where "
                after = " is or has files; configure another quarantine, or move the table"
                yield one.name, NamedFinding("quarantine-in-table", before, others, after)


def _owners(
    claims: Iterable[Claim], form: Callable[[str], str], *, reaching: bool = False
) -> dict[str, set[TableName]]:
    """Whose roots places are, or who reaches them, by their forms."""
    found: dict[str, set[TableName]] = {}
    for claim in claims:
        for place in claim.reaches if reaching else claim.roots:
            found.setdefault(form(place), set()).add(claim.name)
    return found


def _readings(named: frozenset[str]) -> Sequence[frozenset[str]]:
    """Which storages are taken for none but themselves, reading by reading.

    Two that are both named are two. One that is named may still be the one behind a name that nobody declared.
    """
    return [named - {one} for one in sorted(named) if one.partition("://")[0] in _OF_SEVERAL_NAMES] or [named]


def _merged(readings: Iterable[_MeantBy]) -> _MeantBy:
    """Whatever any of the readings says."""
    found: dict[TableName, frozenset[TableName]] = {}
    for reading in readings:
        for name, others in reading.items():
            found[name] = found.get(name, frozenset()) | others
    return found


def _reasons(found: _MeantBy, code: str, text: str) -> Iterable[tuple[TableName, NamedFinding]]:
    before, _, after = text.partition("{}")
    for name, others in found.items():
        if others:
            yield name, NamedFinding(code, before, others, after)


def lookalike(place: str, storages: frozenset[str]) -> str:
    """The place as if every storage were one that may be, by undeclared names: to be compared with its like alone."""
    storage, key = storage_and_key(place)
    if storage in storages:
        return place
    scheme, _, authority = storage.partition("://")
    authority = authority.lower()
    if scheme in _HADOOP or scheme == "file":
        return f"{'hdfs' if scheme in _HADOOP else scheme}://*{key}"
    if scheme in _AZURE:
        container, _, host = authority.partition("@")
        return f"abfs://{container}@{host.partition('.')[0]}{key}"
    return f"{scheme}://{authority.rpartition('@')[2]}{key}"


def _no_place(location: str) -> Reason:
    text = f"its location {wording.quoted(location)} names no place, so that it may be anywhere; write scheme://bucket/path"
    return Reason("no-place", text)


def _words(names: frozenset[TableName], is_seen: Callable[[TableName], bool]) -> str:
    """``lake.db.t, lake.db.u and others``; of those that are not to be seen, only that there are any."""
    told = some(filter(is_seen, names), _NAMED_MAX)
    if not told:
        return "another table"
    return ", ".join(wording.cut(str(name)) for name in told) + (" and others" if len(names) > len(told) else "")
