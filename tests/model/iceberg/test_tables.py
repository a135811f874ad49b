"""What a table's metadata says of itself, in which summaries are written by strangers."""

from __future__ import annotations

from icewright.model.iceberg.tables import ATTEMPT_KEY, Snapshot
from tests.cases import each_case


@each_case(
    ("said", "number"),
    [
        ("0", 0),
        ("12", 12),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, None),
        ("9" * 5_000, None),  # more digits than Python makes a number of
        ("", None),
        ("-1", None),
        ("1.5", None),
        (" 1", None),
        ("\u0663", None),
        ("\u00b2", None),
    ],
)
def test_a_number_of_a_summary_is_one_or_nothing(said: str, number: int | None) -> None:
    snapshot = Snapshot(1, None, 1, 0, None, "list.avro", None, {"total-records": said, ATTEMPT_KEY: said})
    assert (snapshot.number("total-records"), snapshot.attempt) == (number, number)
    assert snapshot.number("total-data-files") is None
