"""Settings of the file format: what is tried on rows, what wins, and what is left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icewright.core import codec
from icewright.core.errors import Unsupported
from icewright.model.iceberg.tables import Json
from icewright.model.iceberg.writer_settings import WriterSettings
from icewright.model.queries.queries import Filter, LiteralKind, Operator, QueryRecord
from icewright.model.queries.recommendations import CandidateTrial, PropertiesChange, Recommendation, Verdict
from icewright_spark.parquet.errors import OutputUnwritable
from icewright_spark.parquet.schema import arrow_schema
from icewright_spark.trials.format_sample import (
    LEAVES_MAX,
    ROW_BYTES_MAX,
    FormatSample,
    Piece,
    Round,
    format_sample,
    one_round,
)
from icewright_spark.trials.formats import FIRST_ROUNDS, Measure
from icewright_spark.trials.formats import ROUNDS as ALL_ROUNDS
from icewright_spark.trials.recommend import Options, recommend
from tests.builders.queries import equal
from tests.spark_side.trials.trial_tables import TABLE, Made, between, in_files, queries

ROWS, FILES = 40_000, 8
CODEC, LEVEL = "write.parquet.compression-codec", "write.parquet.compression-level"
ROW_GROUP = "write.parquet.row-group-size-bytes"
DICTIONARY = "write.parquet.dict-encoding-enabled.column."

FIELDS: tuple[Json, ...] = tuple(
    {"id": number, "name": name, "type": kind, "required": False}
    for number, (name, kind) in enumerate(
        {"a": "long", "b": "long", "note": "string", "noise": "double", "uid": "string"}.items(), start=1
    )
)
IDS = {each["name"]: each["id"] for each in FIELDS}


def made_table() -> Made:
    """``note`` compresses well, ``noise`` and ``uid`` do not; no order of ``a`` or ``b``."""
    rng = np.random.default_rng(3)
    words = [f"word{number}" for number in range(1_000)]
    rows = {
        "a": rng.integers(0, 10**6, ROWS),
        "b": rng.integers(0, 10**6, ROWS),
        "note": [" ".join(words[place] for place in row) for row in rng.integers(0, 1_000, (ROWS, 6)).tolist()],
        "noise": rng.random(ROWS),
        "uid": [f"{number:016x}" for number in rng.integers(0, 2**60, ROWS).tolist()],
    }
    return in_files(rows, FILES)


@pytest.fixture(scope="module")
def made() -> Made:
    return made_table()


def sample_of(
    made: Made,
    properties: Mapping[str, str],
    *,
    dictionary: Collection[str] = (),
    pieces: int = 4,
    encoded_bytes: int = 1 << 20,
) -> FormatSample:
    rows = made.rows.cast(arrow_schema(FIELDS))
    each = ROWS // FILES
    parts = tuple(Piece(rows.slice(number * 2 * each, each), encoded_bytes) for number in range(pieces))
    return FormatSample(FIELDS, properties, {}, frozenset(IDS[name] for name in dictionary), parts, ROWS)


@dataclass
class Meter:
    """Rounds that are really written, with CPU seconds by their bytes instead of by a clock."""

    write_s: Callable[[WriterSettings], float] = lambda _settings: 0.001
    noise: float = 0.0
    seen: list[WriterSettings] = field(default_factory=list)
    chance: Any = field(default_factory=lambda: np.random.default_rng(5))
    columns: set[str] = field(default_factory=set)

    def __call__(self, sample: FormatSample, settings: WriterSettings, columns: Collection[str]) -> Round:
        self.seen.append(settings)
        self.columns |= set(columns)
        found = one_round(sample, settings, columns)
        off = self.noise * self.chance.random()
        return replace(found, write_s=self.write_s(settings), decode_s=(found.decode_s > 0) * (1e-4 + off))


PRESENT = WriterSettings(codec="gzip", compression_level=6)


def metered(spent: Callable[[WriterSettings, int], float]) -> Measure:
    """Rounds of the present bytes; decoding takes the CPU seconds that are ``spent`` in a round of settings, from 1."""
    rounds: Counter[WriterSettings] = Counter()

    def measure(sample: FormatSample, settings: WriterSettings, columns: Collection[str]) -> Round:
        rounds[settings] += 1
        found, took_s = one_round(sample, PRESENT, columns), spent(settings, rounds[settings])
        return replace(found, write_s=0.001, decode_s=np.where(found.decode_s > 0, took_s, 0.0))

    return measure


def asked(filters: Callable[[int], Sequence[Filter]], *columns: str, count: int = 400) -> list[QueryRecord]:
    """So many queries within a day, that read these columns."""
    found = queries(count, filters)
    return [
        replace(
            one,
            started_at=one.started_at // 400,
            tables=tuple(replace(read, columns=columns) for read in one.tables),
        )
        for one in found
    ]


def everything(place: int) -> Sequence[Filter]:
    """Ranges that skip nothing, all of them others."""
    return between("a", -1 - place % 100, 2 * 10**6)


def advised(made: Made, log: Sequence[QueryRecord], sample: FormatSample, **options: Any) -> Recommendation:
    given = {"measure": Meter()} | options
    found = recommend(TABLE, made.sample(100), small(made.listed()), log, Options(formats=lambda: sample, **given))
    assert codec.loads(Recommendation, codec.dumps(found)) == found
    return found


def small(listed: Any) -> Any:
    """The files with the size that their rows have."""
    sizes = pa.array(np.full(listed.num_rows, 1 << 20))
    return listed.set_column(listed.column_names.index("file_size_in_bytes"), "file_size_in_bytes", sizes)


def by_candidate(found: Recommendation) -> dict[str, CandidateTrial]:
    return {str(trial.candidate): trial for trial in found.trials}


def test_a_codec_wins_where_columns_that_are_read_compress_better(made: Made) -> None:
    found = advised(made, asked(everything, "note"), sample_of(made, {CODEC: "snappy"}))
    assert found.verdict is Verdict.CHANGE, found.reason
    assert isinstance(found.candidate, PropertiesChange)
    assert found.candidate.properties[CODEC] == "zstd"
    assert found.candidate.properties[LEVEL] in {"1", "3", "9"}
    assert found.chosen is not None
    assert found.chosen.test is not None
    written = found.chosen.written
    assert written is not None
    assert (written.sample_rows, written.sample_files, written.rounds) == (ROWS // 2, 4, 5)
    assert written.bytes < 0.8 * written.bytes_now
    columns = {one.column: one for one in written.columns}
    assert columns["note"].bytes < 0.8 * columns["note"].bytes_now
    assert columns["noise"].bytes > 0.9 * columns["noise"].bytes_now
    # What queries read is the two columns, of all rows of the table, and of no file less than before.
    names = ("a", "note")
    assert found.chosen.test.bytes_read_now == 2 * sum(columns[name].bytes_now for name in names)
    assert found.chosen.test.bytes_read.mean == pytest.approx(2 * sum(columns[name].bytes for name in names))
    assert found.chosen.test.files_opened.mean == found.chosen.test.files_opened_now == FILES
    assert found.chosen.cost.rewrite_bytes == found.evidence.bytes
    codes = {caveat.code for caveat in found.caveats}
    assert "format-of-new-files" in codes
    assert "bloom-estimate" not in codes
    tried = by_candidate(found)
    assert f"{CODEC}=uncompressed" in tried
    assert tried[f"{CODEC}=uncompressed"].written is not None
    assert tried[f"{CODEC}=uncompressed"].train.bytes_share > 1.5


def test_where_only_columns_that_do_not_compress_are_read_the_table_is_left(made: Made) -> None:
    found = advised(made, asked(lambda place: between("noise", -1 - place % 100, 2), "uid"), sample_of(made, {}))
    assert found.verdict is Verdict.LEAVE, found.candidate
    assert any(trial.written is not None for trial in found.trials)


def test_a_level_that_costs_more_to_write_than_it_saves_loses(made: Made) -> None:
    """The same bytes, and of the dear level so many seconds more that no week earns them."""
    sample = sample_of(made, {CODEC: "snappy"})
    dear = Meter(write_s=lambda settings: 1e4 if settings.compression_level in {1, 3, 9} else 0.001)
    found = advised(made, asked(everything, "note"), sample, measure=dear)
    assert found.verdict is Verdict.LEAVE
    cheap = by_candidate(advised(made, asked(everything, "note"), sample))[f"{CODEC}=zstd, {LEVEL}=9"]
    trial = by_candidate(found)[f"{CODEC}=zstd, {LEVEL}=9"]
    assert trial.cost.cpu_s == pytest.approx(cheap.cost.cpu_s + 2 * (1e4 - 0.001))


def test_what_is_written_often_costs_as_often(made: Made) -> None:
    sample, log = sample_of(made, {CODEC: "snappy"}), asked(everything, "note")
    slow = Meter(write_s=lambda settings: 1.0 if settings.codec == "zstd" else 0.0)
    once = by_candidate(advised(made, log, sample, measure=slow))[f"{CODEC}=zstd, {LEVEL}=3"]
    often = by_candidate(advised(made, log, sample, measure=slow, written_share=5.0))[f"{CODEC}=zstd, {LEVEL}=3"]
    assert often.cost.cpu_s - once.cost.cpu_s == pytest.approx(4 * 2 * 1.0)


def test_noise_between_rounds_widens_the_interval(made: Made) -> None:
    sample, log = sample_of(made, {CODEC: "snappy"}), asked(everything, "note")
    quiet, loud = (
        by_candidate(advised(made, log, sample, measure=Meter(noise=noise)))[f"{CODEC}=zstd, {LEVEL}=3"]
        for noise in (0.0, 5e-4)
    )
    width = [each.train.saved_s_per_day.high - each.train.saved_s_per_day.low for each in (quiet, loud)]
    assert width[1] > 2 * width[0]


def test_smaller_row_groups_win_where_rows_lie_in_order(made: Made) -> None:
    """Each piece is of 64 MiB as its file has it: one row group now, and eight of 8 MiB, of which a query reads one."""
    order = np.argsort(np.asarray(made.rows["a"]), kind="stable")
    ordered = Made(made.rows.take(pa.array(order)), made.placed)
    sample = sample_of(ordered, {}, encoded_bytes=64 << 20)
    log = asked(lambda place: between("a", place % 400 * 2_000, place % 400 * 2_000 + 1_000), "note", count=4_000)
    found = advised(ordered, log, sample)
    assert found.verdict is Verdict.CHANGE, found.reason
    assert isinstance(found.candidate, PropertiesChange)
    assert found.candidate.properties[ROW_GROUP] == str(8 << 20)
    assert found.chosen is not None
    assert found.chosen.written is not None
    assert (found.chosen.written.row_groups_now, found.chosen.written.row_groups) == (4, 32)
    assert found.chosen.test is not None
    assert found.chosen.test.bytes_share < 0.4
    assert f"{ROW_GROUP}={128 << 20}" not in by_candidate(found)  # as they are now


def test_a_dictionary_of_values_that_hardly_repeat_is_tried_without(made: Made) -> None:
    sample = sample_of(made, {}, dictionary=("uid", "note"))
    found = advised(made, asked(everything, "uid"), sample)
    tried = by_candidate(found)
    trial = tried[f"{DICTIONARY}uid=false"].written
    assert trial is not None
    columns = {one.column: one for one in trial.columns}
    assert columns["uid"].bytes < columns["uid"].bytes_now
    assert columns["a"].bytes == columns["a"].bytes_now


def test_a_row_group_is_skipped_by_a_dictionary_that_has_all_values(made: Made) -> None:
    """Values of each row group reach from end to end, and 50 of 100 are in it: only a dictionary says which."""
    rng = np.random.default_rng(8)
    groups = np.arange(ROWS) // (ROWS // FILES)
    inner = rng.integers(0, 50, ROWS) * 2 + groups % 2
    values = np.where(np.arange(ROWS) % 500 == 0, 0, np.where(np.arange(ROWS) % 500 == 1, 999, 100 + inner))
    rows = made.rows.set_column(0, "a", pa.array(values))
    table = Made(rows, made.placed)
    sample = sample_of(table, {CODEC: "snappy"}, dictionary=("a",))
    sample = replace(
        sample, pieces=tuple(Piece(rows.slice(n * 5_000, 5_000).cast(arrow_schema(FIELDS)), 1 << 20) for n in range(4))
    )
    log = asked(lambda place: [equal("a", str(100 + place % 100), LiteralKind.NUMBER)], "note")

    def share_read(dictionary: frozenset[int]) -> float:
        found = advised(table, log, replace(sample, dictionary=dictionary))
        trial = by_candidate(found)[f"{CODEC}=zstd, {LEVEL}=3"]
        assert trial.written is not None
        of_all = sum(one.bytes_now for one in trial.written.columns if one.column in {"a", "note"})
        return trial.train.bytes_read_now / (2 * of_all)

    assert share_read(frozenset()) == 1.0
    assert share_read(frozenset({IDS["a"]})) == pytest.approx(0.5, rel=0.05)


def test_nothing_is_read_or_written_where_it_could_not_pay(made: Made) -> None:
    def formats() -> FormatSample:
        raise AssertionError("rows were read")

    log = [
        replace(one, started_at=number * 3 * 86_400_000) for number, one in enumerate(asked(everything, "note")[:60])
    ]
    found = recommend(TABLE, made.sample(100), small(made.listed()), log, Options(formats=formats))
    assert found.verdict is Verdict.LEAVE


def test_what_cannot_be_written_is_said(made: Made) -> None:
    def formats() -> FormatSample:
        raise Unsupported("only Parquet can be merged")

    def no_room(*_: Any) -> Round:
        raise OutputUnwritable("no room is left")

    log = asked(everything, "note")
    for options in (
        Options(formats=formats),
        Options(formats=lambda: sample_of(made, {CODEC: "lz4"}), measure=Meter()),
        Options(formats=lambda: sample_of(made, {LEVEL: "high"}), measure=Meter()),
        Options(formats=lambda: sample_of(made, {}), measure=no_room),
    ):
        found = recommend(TABLE, made.sample(100), small(made.listed()), log, options)
        said = {caveat.code: caveat.text for caveat in found.caveats}
        assert said["formats-not-tried"].startswith("Settings of the file format are not tried: ")
        assert not any(trial.written for trial in found.trials)


def test_only_columns_that_are_read_are_decoded(made: Made) -> None:
    meter = Meter()
    advised(made, asked(everything, "NOTE", "gone"), sample_of(made, {CODEC: "snappy"}), measure=meter)
    assert meter.columns == {"a", "note"}


def test_queries_that_do_not_say_what_they_read_count_with_their_filters(made: Made) -> None:
    meter = Meter()
    advised(
        made, asked(lambda place: between("b", -place - 1, 10**7)), sample_of(made, {CODEC: "snappy"}), measure=meter
    )
    assert meter.columns == {"b"}


def test_hashed_and_unreadable_filters_count_for_nothing(made: Made) -> None:
    def filters(place: int) -> Sequence[Filter]:
        kind = (LiteralKind.HASHED, LiteralKind.NUMBER, LiteralKind.NUMBER)[place % 3]
        text = "abcd" if place % 3 == 0 else "not a number" if place % 3 == 1 else str(-place)
        return [Filter("a", Operator.GT_EQ, (replace(equal("a", text, kind).literals[0]),))]

    found = advised(made, asked(filters, "note"), sample_of(made, {CODEC: "snappy"}))
    trial = by_candidate(found)[f"{CODEC}=zstd, {LEVEL}=3"]
    assert found.evidence.train is not None
    assert trial.train.queries == found.evidence.train.evaluated


def test_settings_that_were_measured_rarely_do_not_win(made: Made) -> None:
    """All look alike in the first rounds, and all that are measured again look worse then."""

    def spent(settings: WriterSettings, number: int) -> float:
        return 5.0 if settings == PRESENT else 1.0 if number <= FIRST_ROUNDS else 1.1

    found = advised(made, asked(everything, "note"), sample_of(made, {CODEC: "gzip"}), measure=metered(spent))
    assert found.verdict is Verdict.CHANGE, found.reason
    assert found.chosen is not None
    assert found.chosen.written is not None
    assert found.chosen.written.rounds == ALL_ROUNDS
    assert min(trial.written.rounds for trial in found.trials if trial.written is not None) == FIRST_ROUNDS


def test_luck_in_the_rounds_that_choose_does_not_judge(made: Made) -> None:
    """The same bytes by all settings; one is fast until it is chosen, and as fast as all others later."""

    def spent(settings: WriterSettings, number: int) -> float:
        return 1.0 if settings.codec == "snappy" and number <= ALL_ROUNDS else 5.0

    found = advised(made, asked(everything, "note"), sample_of(made, {CODEC: "gzip"}), measure=metered(spent))
    snappy = by_candidate(found)[f"{CODEC}=snappy"]
    assert snappy.train.saved_s_per_day.low > 0
    assert snappy.test is not None, "it was chosen"
    assert snappy.test.saved_s_per_day.mean == pytest.approx(0, abs=1e-9)
    assert found.verdict is Verdict.LEAVE


def test_the_first_round_of_all_counts_for_nothing(made: Made) -> None:
    """The present settings have it, which would make all others look better."""
    first = [True]

    def measure(sample: FormatSample, settings: WriterSettings, columns: Collection[str]) -> Round:
        found, spent = one_round(sample, settings, columns), 10.0 if first.pop() else 0.001
        first.append(False)
        return replace(found, write_s=spent, decode_s=np.where(found.decode_s > 0, spent, 0.0))

    found = advised(made, asked(everything, "note"), sample_of(made, {CODEC: "snappy"}), measure=measure)
    written = [trial.written for trial in found.trials if trial.written is not None]
    assert written
    assert max(one.write_s_now for one in written) == pytest.approx(0.001)


def test_queries_of_which_one_ran_nearly_always_try_nothing(made: Made) -> None:
    """Ten filters ran often, 1,500 once: of those that are taken, too few tell anything."""
    often = [place for place in range(10) for _ in range(2_000)]
    order = np.random.default_rng(1).permutation([*often, *range(10, 1_510)])
    log = asked(lambda place: between("a", -1 - int(order[place % len(order)]), 10**7), "note", count=2 * len(order))
    found = advised(made, log, sample_of(made, {CODEC: "snappy"}))
    said = {caveat.code: caveat.text for caveat in found.caveats}
    assert "tell as much as" in said["formats-not-tried"]
    assert not any(trial.written for trial in found.trials)


def test_columns_that_have_another_name_in_files_keep_their_dictionary(made: Made) -> None:
    """The name of a property is that of the table, and a dot in it would be taken for one of a path."""
    fields = tuple({**each, "name": "u.id" if each["name"] == "uid" else each["name"]} for each in FIELDS)
    sample, schema = sample_of(made, {CODEC: "snappy"}, dictionary=("uid", "note")), arrow_schema(fields)
    renamed = [piece.rows.rename_columns(schema.names).cast(schema) for piece in sample.pieces]
    pieces = tuple(replace(piece, rows=rows) for piece, rows in zip(sample.pieces, renamed, strict=True))
    found = advised(made, asked(everything, "note"), replace(sample, fields=fields, pieces=pieces))
    changes = [one.candidate for one in found.trials if isinstance(one.candidate, PropertiesChange)]
    tried = [key for change in changes for key in change.properties]
    assert f"{DICTIONARY}note" in tried
    assert not [key for key in tried if "u_x2Eid" in key or "u.id" in key]


def test_no_query_reads_more_than_the_table_has(made: Made) -> None:
    """The files are smaller than present settings would write them: they were written by others."""
    sample = sample_of(made, {CODEC: "uncompressed"})
    listed = small(made.listed())
    sizes = pa.array(np.full(listed.num_rows, 1 << 16))
    listed = listed.set_column(listed.column_names.index("file_size_in_bytes"), "file_size_in_bytes", sizes)
    log = asked(everything, "a", "b", "note", "noise", "uid")
    options = Options(formats=lambda: sample, measure=Meter())
    found = recommend(TABLE, made.sample(100), listed, log, options)
    tried = [trial for trial in found.trials if trial.written is not None]
    assert tried
    assert max(trial.train.bytes_read_now for trial in tried) <= found.evidence.bytes * (1 + 1e-9)


@pytest.mark.parametrize(
    ("fields", "size", "rows"),
    [
        (tuple({"id": n, "name": f"c{n}", "type": "int", "required": False} for n in range(1, LEAVES_MAX + 2)), 10, 1),
        (FIELDS, ROW_BYTES_MAX + 1, 1),
    ],
    ids=["columns", "long rows"],
)
def test_what_takes_too_much_memory_is_not_read(fields: tuple[Json, ...], size: int, rows: int) -> None:
    files = pa.table({"file_path": ["/nowhere"], "record_count": [rows], "file_size_in_bytes": [size]})
    with pytest.raises(Unsupported, match=r"columns|KiB"):
        format_sample(fields, {}, {}, files)
