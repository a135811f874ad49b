"""What the end of an attempt means to the server."""

from __future__ import annotations

from icewright.core.errors import (
    Conflict,
    IcewrightError,
    LeaseLost,
    NotFound,
    TableReplaced,
    Unavailable,
    Unreadable,
    Unsupported,
)
from icewright.model.work.jobs import Cancelled, Conflicted, Failed
from icewright_spark.optimizer.attempt import result_of
from icewright_spark.parquet.errors import FileUnreadable, OutputExists, OutputUnwritable, ProofFailed
from tests.cases import each_case
from tests.narrowing import of_type


@each_case("error", [Conflict("moved"), TableReplaced("another"), NotFound("gone")])
def test_a_world_that_moved_is_planned_anew(error: IcewrightError) -> None:
    assert result_of(error, cancelled=False) == Conflicted(error.message)


@each_case("error", [Unavailable("a"), Unreadable("b"), FileUnreadable("c"), OutputUnwritable("d")])
def test_what_may_pass_is_tried_again(error: IcewrightError) -> None:
    assert result_of(error, cancelled=False) == Failed(error.code, error.message, retryable=True)


@each_case("error", [Unsupported("a"), ProofFailed("b"), OutputExists("c")])
def test_what_will_not_pass_is_not_tried_again(error: IcewrightError) -> None:
    assert result_of(error, cancelled=False) == Failed(error.code, error.message, retryable=False)


def test_what_spark_says_is_cut_to_its_first_line() -> None:
    error = RuntimeError("executor lost\n\tat org.apache.spark")
    assert result_of(error, cancelled=False) == Failed("engine", "executor lost", retryable=True)
    empty_first = RuntimeError("\n[PARSE_SYNTAX_ERROR] near 'x'\n\n== SQL ==")
    assert result_of(empty_first, cancelled=False) == Failed("engine", "[PARSE_SYNTAX_ERROR] near 'x'", retryable=True)
    assert result_of(RuntimeError(), cancelled=False) == Failed("engine", "RuntimeError", retryable=True)


def test_a_lease_lost_may_be_tried_again_by_somebody() -> None:
    assert result_of(LeaseLost("gone"), cancelled=False) == Failed("lease-lost", "gone", retryable=True)


def test_jobs_ended_for_a_lost_lease_or_a_wish_to_cancel_say_so_and_not_what_spark_said_of_it() -> None:
    ended = RuntimeError("[SPARK_JOB_CANCELLED] Job 7 cancelled")
    assert isinstance(result_of(ended, cancelled=True), Cancelled)
    lost = of_type(Failed, result_of(ended, cancelled=False, lost="another attempt has it"))
    assert (lost.code, lost.retryable) == ("lease-lost", True)
    assert lost.detail.startswith("another attempt has it")
    assert isinstance(result_of(ended, cancelled=True, lost="another attempt has it"), Failed)
