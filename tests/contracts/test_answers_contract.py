"""What requests with a key were answered: carried out once, for a day, on every server of the store."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from icewright.web.idempotent_answers import AnotherRequest, Answer, Answered, First, KeyedRequest, UnderWay
from icewright.web.idempotent_answers_sql import SqlAnswers
from tests.contracts.samples import HOSTILE_PARTS
from tests.contracts.stores import Stores
from tests.doubles.clock import ManualClock

REQUEST = KeyedRequest("token:ci", "k", "f1")
ANSWER = Answer(202, {"content-type": "application/json"}, '{"task_id":"1"}')
DAY_MS = 24 * 3_600_000


@pytest.fixture
def store(stores: Stores) -> SqlAnswers:
    return stores.answers()


def test_a_request_is_begun_once_and_then_has_its_answer(stores: Stores) -> None:
    first, second = stores.answers(), stores.answers()
    assert first.begin(REQUEST, DAY_MS) == First()
    assert second.begin(REQUEST, DAY_MS) == UnderWay()
    first.keep(REQUEST, ANSWER)
    assert second.begin(REQUEST, DAY_MS) == Answered(ANSWER)
    assert first.begin(REQUEST, DAY_MS) == Answered(ANSWER)


def test_another_request_under_the_same_key_is_none_of_it(store: SqlAnswers) -> None:
    other = replace(REQUEST, fingerprint="f2")
    store.begin(REQUEST, DAY_MS)
    assert store.begin(other, DAY_MS) == AnotherRequest()
    store.keep(other, ANSWER)
    store.forget(other)
    assert store.begin(REQUEST, DAY_MS) == UnderWay()
    store.keep(REQUEST, ANSWER)
    assert store.begin(other, DAY_MS) == AnotherRequest()


def test_keys_of_others_are_others(store: SqlAnswers) -> None:
    assert store.begin(REQUEST, DAY_MS) == First()
    assert store.begin(replace(REQUEST, principal="token:cd", fingerprint="f2"), DAY_MS) == First()
    assert store.begin(replace(REQUEST, principal="token:c", key="ik"), DAY_MS) == First()


def test_what_changed_nothing_may_come_again(store: SqlAnswers) -> None:
    store.begin(REQUEST, DAY_MS)
    store.forget(REQUEST)
    assert store.begin(REQUEST, DAY_MS) == First()
    store.forget(replace(REQUEST, key="never begun"))


def test_a_key_is_forgotten_when_its_time_is_over_answered_or_not(store: SqlAnswers, clock: ManualClock) -> None:
    open_one = replace(REQUEST, key="open")
    store.begin(REQUEST, DAY_MS)
    store.keep(REQUEST, ANSWER)
    store.begin(open_one, DAY_MS)
    clock.advance(DAY_MS - 1)
    assert (store.begin(REQUEST, DAY_MS), store.begin(open_one, DAY_MS)) == (Answered(ANSWER), UnderWay())
    clock.advance(1)
    assert (store.begin(REQUEST, DAY_MS), store.begin(open_one, DAY_MS)) == (First(), First())


def test_an_answer_that_comes_when_the_key_is_forgotten_is_kept_nowhere(store: SqlAnswers) -> None:
    store.keep(REQUEST, ANSWER)
    assert store.begin(REQUEST, DAY_MS) == First()


def test_of_many_at_once_one_is_the_first(stores: Stores) -> None:
    doors = [stores.answers() for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda door: door.begin(REQUEST, DAY_MS), doors))
    assert sorted(map(repr, found)) == sorted([repr(First()), *[repr(UnderWay())] * 5])


@pytest.mark.parametrize("part", HOSTILE_PARTS)
def test_names_and_answers_of_any_characters(store: SqlAnswers, part: str) -> None:
    request = KeyedRequest(f"oidc:{part}", part, "f1")
    answer = Answer(200, {"etag": f'"{part}"'}, part)
    assert store.begin(request, DAY_MS) == First()
    store.keep(request, answer)
    assert store.begin(request, DAY_MS) == Answered(answer)
