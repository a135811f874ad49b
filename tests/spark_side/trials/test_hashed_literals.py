"""Hashed strings of queries: equality counts where the optimizer has the key, and no value gets out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from icewright.core import codec
from icewright.model.iceberg.layouts import Curve
from icewright.model.queries.literal_digests import literal_digest
from icewright.model.queries.queries import Filter, Literal, LiteralKind, LiteralPolicy, Operator, QueryRecord
from icewright.model.queries.recommendations import LayoutChange, Recommendation, Verdict
from icewright.queries.sources.literals import LiteralRules
from icewright_spark.trials.recommend import Options, recommend
from tests.spark_side.trials.trial_tables import TABLE, Made, between, equals, in_files, queries, text

ROWS, FILES, CUSTOMERS = 24_000, 16, 300
KEY = b"a key of thirty-two bytes or so."
RULES = LiteralRules(LiteralPolicy.HASH, KEY)


def made() -> Made:
    rng = np.random.default_rng(2)
    customers = [f"customer {number:04}" for number in rng.integers(0, CUSTOMERS, ROWS).tolist()]
    return in_files({"customer": customers, "amount": rng.integers(0, 10**6, ROWS)}, FILES)


def customer(place: int) -> Literal:
    return text(f"customer {place % CUSTOMERS:04}")


def hashed(log: Sequence[QueryRecord]) -> list[QueryRecord]:
    """As the server keeps them."""
    return [RULES.record(one, None) for one in log]


def lookups(count: int = 200) -> list[QueryRecord]:
    return queries(count, lambda place: [equals("customer", customer(7 * place))])


def advised(log: Sequence[QueryRecord], key: bytes | None) -> Recommendation:
    table = made()
    return recommend(TABLE, table.sample(200), table.listed(), log, Options(hash_key=key))


def test_with_the_key_equality_on_strings_counts_as_if_nothing_was_hashed() -> None:
    plain, found = advised(lookups(), None), advised(hashed(lookups()), KEY)
    assert (found.verdict, str(found.candidate)) == (Verdict.CHANGE, "sort(customer)")
    assert found.chosen == plain.chosen
    assert found.evidence.columns_only == 0
    without = advised(hashed(lookups()), None)
    assert (without.verdict, without.reason.code) == (Verdict.LEAVE, "too-few-queries")
    assert without.evidence.columns_only == 200


def test_with_another_key_they_count_for_columns_alone() -> None:
    found = advised(hashed(lookups()), b"another key of enough bytes, too")
    assert (found.reason.code, found.evidence.columns_only) == ("too-few-queries", 200)


def test_all_values_of_an_in_have_to_be_known() -> None:
    known = queries(100, lambda place: [equals("customer", customer(place), customer(place + 9))])
    unknown = queries(40, lambda place: [equals("customer", customer(place), text(f"nobody {place}"))], first=100)
    found = advised(hashed([*known, *unknown]), KEY)
    assert found.evidence.columns_only == 40
    assert found.evidence.train is not None
    assert found.evidence.test is not None
    assert found.evidence.train.evaluated + found.evidence.test.evaluated == 100


def test_other_comparisons_of_hashed_strings_stay_hidden() -> None:
    log = queries(100, lambda place: [Filter("customer", Operator.GT_EQ, (customer(place),))])
    assert advised(hashed(log), KEY).evidence.columns_only == 100


def test_no_value_is_in_what_is_found() -> None:
    """Cuts would name values, and a digest without a key of the filters could be tried."""
    by_customer = lookups(400)
    by_amount = queries(400, lambda place: between("amount", place * 1_000, place * 1_000 + 20_000))
    log = [both[place % 2] for place, both in enumerate(zip(by_customer, by_amount, strict=True))]
    found, plain = advised(hashed(log), KEY), advised(log, None)
    said = codec.dumps(found)
    assert "customer 0" not in said
    assert KEY.decode() not in said
    assert found.trials
    for trial in found.trials:
        if isinstance(trial.candidate, LayoutChange) and trial.candidate.layout.curve is Curve.CUTS:
            assert trial.candidate.layout.cuts is not None
            assert all(
                cut is None or cut.literal.kind is not LiteralKind.STRING for cut in trial.candidate.layout.cuts.cuts
            )
    keys, plain_keys = ({one.key for one in those.judged} for those in (found, plain))
    assert len(keys) == len(plain_keys) == 200
    assert len(keys & plain_keys) == 100  # those by amount, of which nothing is hashed
    assert KEY.decode() not in repr(Options(hash_key=KEY))


def test_the_digest_is_what_the_server_keeps() -> None:
    assert RULES.literal(text("Zoë")) == Literal(LiteralKind.HASHED, literal_digest(KEY, "Zoë"))
    assert literal_digest(KEY, "Zoë") == "4c4d4203d9b99382"  # as it is in query logs that are there


def test_large_strings_and_nulls_are_read_as_well() -> None:
    table = made()
    rows = table.rows.set_column(0, "customer", table.rows["customer"].cast(pa.large_string()))
    sample = Made(rows, table.placed).sample(200)
    nulls = sample.set_column(0, "customer", pa.array([None, *sample["customer"].to_pylist()[1:]], pa.large_string()))
    found = recommend(TABLE, nulls, table.listed(), hashed(lookups()), Options(hash_key=KEY))
    assert found.evidence.columns_only == 0
