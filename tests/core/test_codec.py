"""What is stored or sent comes back as it was, and nothing else is taken for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.codec import OneOf, dumps, from_json, loads, members_of, to_json
from icewright.core.errors import InvalidMessage
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import ListedObject
from icewright.model.work.jobs import Cancelled, Committed, CommitUnknown, Conflicted, Failed, TaskReport
from icewright.model.work.tasks import Lease, TaskState
from icewright.web.schema import schema_of
from tests.cases import each_case


@dataclass(frozen=True, slots=True)
class Leaf:
    number: int
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Tree:
    leaves: tuple[Leaf, ...]
    by_partition: Mapping[Partition, int]
    by_state: Mapping[TaskState, float] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    anything: Any = None


@dataclass(frozen=True, slots=True)
class Nested:
    number: int
    nested: tuple[Mapping[str, Nested], ...] = ()


def test_a_name_for_a_type_is_that_type() -> None:
    assert loads(ListedObject, dumps(ListedObject(CanonicalPath("s3://b/a"), 1))) == ListedObject(
        CanonicalPath("s3://b/a"), 1
    )
    with pytest.raises(InvalidMessage, match="path"):
        loads(ListedObject, '{"path":1,"size_bytes":1}')


texts = st.text(max_size=20)
trees = st.builds(
    Tree,
    leaves=st.lists(st.builds(Leaf, st.integers(), st.none() | texts), max_size=3).map(tuple),
    by_partition=st.dictionaries(st.builds(Partition, st.integers(0, 9), texts), st.integers(), max_size=3),
    by_state=st.dictionaries(st.sampled_from(TaskState), st.floats(allow_nan=False, allow_infinity=False), max_size=3),
    names=st.frozensets(texts, max_size=3),
    anything=st.none() | st.integers() | texts,
)


@given(trees)
def test_what_goes_out_comes_back(tree: Tree) -> None:
    assert loads(Tree, dumps(tree)) == tree


@each_case(
    "result",
    [
        Committed(2**63 - 1),
        Conflicted("somebody"),
        CommitUnknown("who knows"),
        Failed("engine", "out of memory", retryable=True),
        Cancelled("enough"),
    ],
)
def test_a_union_is_told_by_its_kind(result: Committed | Conflicted | CommitUnknown | Failed | Cancelled) -> None:
    report = TaskReport(1, "task-1", 2, 3, result, (), (), 4, 5)
    assert loads(TaskReport, dumps(report)) == report
    assert to_json(report)["result"]["kind"] == result.kind


def test_a_field_named_kind_is_only_a_field() -> None:
    entry = CatalogEntry("lake", CatalogKind.SQL, "sqlite:////lake.db", "/lake", {"a": "b"})
    assert loads(CatalogEntry, dumps(entry)) == entry


@each_case(
    ("data", "path"),
    [
        ({"number": 1, "surprise": 2}, r"\$: unknown field 'surprise'"),
        ({}, r"\$: missing field 'number'"),
        ({"number": "1"}, r"\$\.number: expected int, found str"),
        ({"number": True}, r"\$\.number: expected int, found bool"),
        ({"number": 1, "text": 2}, r"\$\.text: expected str"),
        ([], r"\$: expected an object"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(data: Any, path: str) -> None:
    with pytest.raises(InvalidMessage, match=path):
        from_json(Leaf, data)


def test_paths_lead_into_arrays_and_mappings() -> None:
    with pytest.raises(InvalidMessage, match=r"\$\.leaves\[1\]\.number"):
        from_json(Tree, {"leaves": [{"number": 1}, {"number": None}], "by_partition": []})
    with pytest.raises(InvalidMessage, match=r"\$\.by_state: 'nowhere' is none of queued"):
        from_json(Tree, {"leaves": [], "by_partition": [], "by_state": {"nowhere": 1.0}})


def test_what_is_wrong_far_below_is_read_once() -> None:
    """Read again at each level, it would be read a million million times here."""
    data: dict[str, Any] = {"number": "1"}
    for _ in range(40):
        data = {"number": 1, "nested": [{"a": data}]}
    with pytest.raises(InvalidMessage, match=r"^\$(\.nested\[0\]\.a){40}\.number: expected int, found str$"):
        from_json(Nested, data)


def test_an_unknown_kind_is_refused() -> None:
    report = to_json(TaskReport(1, "t", 1, 1, Cancelled(""), (), (), 0, 0))
    report["result"] = {"kind": "triumph"}
    with pytest.raises(InvalidMessage, match=r"result\.kind: 'triumph' is none of cancelled, committed"):
        from_json(TaskReport, report)


@each_case("text", ["", "{", "nul", b"\xff\xfe"])
def test_text_that_is_no_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidMessage, match="not JSON"):
        loads(Lease, text)


def test_a_wrong_constant_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Tagged:
        kind: ClassVar[Literal["one"]] = "one"
        value: int

    with pytest.raises(InvalidMessage, match=r"\$\.kind: expected 'one'"):
        from_json(Tagged, {"kind": "two", "value": 1})


@dataclass(frozen=True, slots=True)
class Circle:
    kind: ClassVar[Literal["circle"]] = "circle"
    radius: int


@dataclass(frozen=True, slots=True)
class Square:
    kind: ClassVar[Literal["square"]] = "square"
    side: int


Shape = Annotated[Any, OneOf((Circle, Square))]


@dataclass(frozen=True, slots=True)
class Drawing:
    shapes: tuple[Shape, ...]
    frame: Shape | None = None


class TestOneOf:
    def test_its_members_are_told_apart_by_their_kind(self) -> None:
        for drawing in (Drawing((Circle(1), Square(2))), Drawing((), Square(3))):
            assert loads(Drawing, dumps(drawing)) == drawing
        with pytest.raises(InvalidMessage, match=r"\$\.frame\.kind: 'line' is none of circle, square"):
            from_json(Drawing, {"shapes": [], "frame": {"kind": "line"}})

    def test_in_a_union_its_members_stand_beside_the_others(self) -> None:
        assert members_of(Shape | None) == (Circle, Square, type(None))
        assert schema_of(Shape | None) == {"anyOf": [schema_of(Circle), schema_of(Square), {"type": "null"}]}
