"""The chain: whatever is done to it afterwards is found, and where."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.audit.model import GENESIS, AuditEntry, Head, hash_of, link, pruned, verify
from icewright.model.access.permissions import Act

TEXTS = st.text(max_size=20)
ACTS = st.builds(Act, TEXTS, TEXTS, st.dictionaries(TEXTS, st.integers() | TEXTS, max_size=3))


def chain(acts: list[Act], start: Head = GENESIS) -> list[AuditEntry]:
    entries: list[AuditEntry] = []
    for number, act in enumerate(acts):
        entries.append(link(entries[-1].head if entries else start, number, "ada", act))
    return entries


@given(st.lists(ACTS, max_size=5))
def test_t12_what_was_written_verifies(acts: list[Act]) -> None:
    entries = chain(acts)
    found = verify(entries)
    assert (found.entries, found.broken_at) == (len(acts), None)
    assert found.head == (entries[-1].head if entries else GENESIS)


CHANGES = {
    "at": lambda entry: replace(entry, at=entry.at + 1),
    "principal": lambda entry: replace(entry, principal="eve"),
    "action": lambda entry: replace(entry, action=entry.action + "x"),
    "resource": lambda entry: replace(entry, resource=entry.resource + "x"),
    "detail": lambda entry: replace(entry, detail={**entry.detail, "new": 1}),
    "hash": lambda entry: replace(entry, hash="0" * 64),
    "previous": lambda entry: replace(entry, previous="1" * 64),
}


@given(st.lists(ACTS, min_size=1, max_size=5), st.data())
@pytest.mark.parametrize("what", CHANGES)
def test_t12_one_that_was_changed_is_named(what: str, acts: list[Act], data: st.DataObject) -> None:
    entries = chain(acts)
    index = data.draw(st.integers(0, len(entries) - 1))
    entries[index] = CHANGES[what](entries[index])
    assert verify(entries).broken_at == index + 1


@given(st.lists(ACTS, min_size=2, max_size=5), st.data())
def test_t12_one_that_was_changed_with_its_hash_breaks_the_next_one(acts: list[Act], data: st.DataObject) -> None:
    entries = chain(acts)
    index = data.draw(st.integers(0, len(entries) - 2))
    other = replace(entries[index], principal="eve")
    entries[index] = replace(other, hash=hash_of(other))
    assert verify(entries).broken_at == index + 2


@given(st.lists(ACTS, min_size=2, max_size=5), st.data())
def test_t12_one_that_is_missing_or_there_twice_is_named(acts: list[Act], data: st.DataObject) -> None:
    entries = chain(acts)
    index = data.draw(st.integers(0, len(entries) - 2))
    assert verify([*entries[:index], *entries[index + 1 :]]).broken_at == index + 2
    assert verify([*entries[: index + 1], *entries[index:]]).broken_at == index + 1


def test_t12_an_end_that_was_cut_off_or_written_anew_is_found_by_a_head_that_was_taken() -> None:
    entries = chain([Act("a", "x"), Act("b", "x"), Act("c", "x")])
    taken = [entries[-1].head]
    assert verify(entries, GENESIS, taken).broken_at is None
    assert verify(entries[:-1]).broken_at is None, "without a head nobody can tell"
    assert verify(entries[:-1], GENESIS, taken).broken_at == 3
    assert verify([], GENESIS, taken).broken_at == 1
    anew = chain([Act("a", "x"), Act("b", "x"), Act("nothing", "x")])
    assert verify(anew, GENESIS, taken).broken_at == 3


def test_t12_a_beginning_that_went_without_saying_so_is_found() -> None:
    entries = chain([Act("a", "x"), Act("b", "x"), Act("c", "x")])
    start = entries[0].head
    assert verify(entries[1:], start).broken_at == 1
    said = [*entries[1:], link(entries[-1].head, 9, "icewright", pruned(start))]
    assert verify(said, start).broken_at is None
    assert verify(said, start, [start]).broken_at is None
    assert verify(said, start, [Head(1, "f" * 64)]).broken_at == 1


def test_t12_a_head_from_before_the_beginning_proves_nothing_and_is_told_apart() -> None:
    entries = chain([Act("a", "x") for _ in range(6)])
    noted, start = entries[1].head, entries[3].head
    forged = chain([pruned(Head(4, "a" * 64))], Head(4, "a" * 64))
    found = verify(forged, Head(4, "a" * 64), [noted])
    assert (found.broken_at, found.unproven, found.is_whole) == (None, (noted,), False)
    honest = [*entries[4:], link(entries[-1].head, 9, "icewright", pruned(start))]
    assert verify(honest, start, [noted]).unproven == (noted,), "nobody can tell these two apart"
    assert verify([*entries[:4], *honest], GENESIS, [noted]).is_whole
    assert verify([*entries[:4], *forged], GENESIS, [noted]).broken_at == 5
