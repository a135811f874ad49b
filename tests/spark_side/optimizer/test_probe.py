"""What a worker takes for a proof, and that one broken probe breaks no other."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from icewright_spark.optimizer import probe as probe_module
from icewright_spark.optimizer.probe import _Found, _Probe, _run, try_out
from icewright_spark.parquet.errors import StorageRefused
from icewright_spark.parquet.storage import Storage
from tests.cases import each_case

SECRET = "a-secret"  # noqa: S105 - to be looked for


class Lying(Storage):
    """A storage that lies in one of several ways about what it was given."""

    lie = ""
    objects: ClassVar[dict[str, bytes]] = {}

    def put(self, location: str, content: bytes) -> None:
        if self.lie == "refuses":
            raise StorageRefused(f"{location}: no entrance with {SECRET}")
        self.objects[location] = content

    def size(self, location: str) -> int:
        return len(self.objects[location]) + (self.lie == "longer")

    def read(self, location: str, offset: int, size_bytes: int) -> bytes:
        content = self.objects[location]
        return (content.upper() if self.lie == "other" else content)[offset : offset + size_bytes]


def one(storage: Storage, number: int = 0) -> _Probe:
    return _Probe(number, "s3://bucket/icewright-probe", storage, b"content")


@each_case(
    ("lie", "said"),
    [("", None), ("longer", "another size"), ("other", "reads otherwise"), ("refuses", "no entrance with ***")],
)
def test_only_what_is_read_back_as_it_was_written_is_a_proof(lie: str, said: str | None) -> None:
    storage = type("Liar", (Lying,), {"lie": lie})({"s3.secret-access-key": SECRET})
    found = try_out(one(storage))
    assert found is None if said is None else found is not None and said in found


def test_one_broken_probe_takes_no_other_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def job(_spark: Any, probes: Sequence[_Probe]) -> list[_Found]:
        if any(each.number == 1 for each in probes):
            raise RuntimeError("the worker is gone")
        return [_Found(each.number, None) for each in probes]

    monkeypatch.setattr(probe_module, "_job", job)
    spark: Any = None
    probes = [one(Storage(), number) for number in range(3)]
    found = {each.number: each.trouble for each in _run(spark, probes)}
    assert found == {0: None, 1: "a worker broke: the worker is gone", 2: None}
    assert _run(spark, []) == []


def test_no_secret_is_in_the_text_of_a_probe() -> None:
    probe = one(Storage({"s3.secret-access-key": SECRET}))
    assert SECRET not in repr(probe) + repr(dataclasses.replace(probe, number=2))
