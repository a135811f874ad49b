"""The feed over HTTP: pages, and streams that go on, give up on who does not read, and end with the server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn

from icewright.api_client.client import Client
from icewright.api_client.stream import followed
from icewright.core.errors import Rejected, StoreUnavailable, Unavailable
from icewright.feed.sql import SqlFeed
from icewright.feed.streams import EventStream, FeedSource, Pace, Streams
from icewright.identity.authentication import Access, loopback_hosts
from icewright.model.access.identity import NewToken
from icewright.model.access.permissions import OWNER, Grant, Principal, Role, Scope
from icewright.model.access.redacted_text import Words
from icewright.model.events.feed import Fact, FactKind, FeedFilter
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Reason
from icewright.ports.feed import Feed
from icewright.server.http.app import create_app
from icewright.server.server import listen
from icewright.web.deps import PRINCIPAL
from tests.builders.served import TOKEN, V1, Served, problem
from tests.cases import each_case
from tests.doubles.clock import ManualClock
from tests.lakes.stores import new_store
from tests.servers.in_threads import serving_web

ALL = FeedFilter()
HURRIED = Pace(look_s=0.01, beat_s=0.05, slow_s=0.2, streams_max=3, kept_back=1)
_HOSTILE = "evil\n\nevent: gap\ndata: {}\n\n"

Message = MutableMapping[str, Any]


def told(feed: Feed, name: str, kind: FactKind = FactKind.PARKED, namespace: str = "db") -> None:
    table = TableName("lake", (namespace,), name)
    feed.tell(Fact(kind, "lake", Reason("parked", f"it is {name}"), TableId("lake", "u"), table), f"{namespace}/{name}")


@pytest.fixture
def feed() -> SqlFeed:
    return SqlFeed(new_store(), ManualClock())


class TestPages:
    def test_what_becomes_of_a_task_is_in_it(self, served: Served) -> None:
        served.table()
        (fact,) = served.get("/feed")["items"]
        task = served.get("/tasks")["items"][0]
        assert (fact["kind"], fact["table"], fact["task_id"]) == ("queued", "lake.db.events", task["task_id"])
        assert fact["do"] == f"icewright tasks show {task['task_id']}"

    def test_page_by_page_and_only_what_is_asked_for(self, served: Served) -> None:
        feed = served.control.tasks.feed
        for number in range(5):
            told(feed, f"t{number}", namespace="db" if number % 2 else "other")
        first = served.get("/feed", limit=3)
        second = served.get("/feed", limit=3, cursor=first["next_cursor"])
        assert [fact["sequence"] for fact in first["items"] + second["items"]] == [1, 2, 3, 4, 5]
        assert second["next_cursor"] is None
        assert [fact["table"] for fact in served.get("/feed", under="lake.db")["items"]] == ["lake.db.t1", "lake.db.t3"]
        assert [fact["sequence"] for fact in served.get("/feed", after=4)["items"]] == [5]
        assert served.get("/feed", kind="failed")["items"] == []

    @each_case(
        ("query", "code"),
        [
            ("kind=x", "invalid-request"),
            ("under=`", "invalid-name"),
            ("after=-1", "invalid-request"),
            (f"after={2**63}", "invalid-request"),
            ("cursor=x", "invalid-message"),
            ("under=" + "&under=".join("a" * 101), "invalid-request"),
        ],
    )
    def test_what_is_no_question_is_refused(self, query: str, code: str) -> None:
        for path in ("/feed", "/feed/stream"):
            if not (path.endswith("stream") and query.startswith("cursor")):
                problem(Served().http.get(f"{V1}{path}?{query}"), 400, code)

    def test_t1_strangers_get_no_stream(self) -> None:
        problem(Served().client().get(f"{V1}/feed/stream"), 401, "unauthenticated")


class Reader:
    """A client of one stream, without any network: reads what is sent until it has seen enough, or never reads."""

    caller = OWNER

    def __init__(
        self,
        streams: Streams,
        after: int | None = 0,
        only: FeedFilter = ALL,
        *,
        reads: int = 100,
        stands: Callable[[], bool] = lambda: True,
    ) -> None:
        self._stream, self._reads = EventStream(streams, FeedSource(streams.feed, only), after, stands), reads
        self.messages: list[Message] = []
        self.gone = anyio.Event()

    async def run(self, until: Callable[[str], bool] = lambda _text: False) -> Reader:
        async def receive() -> Message:
            await self.gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if len(self.messages) >= self._reads:
                await anyio.sleep_forever()
            self.messages.append(message)
            if until(self.text):
                self.gone.set()

        with anyio.fail_after(20):
            await self._stream(
                {"type": "http", "path": "/feed/stream", "headers": [], PRINCIPAL: self.caller}, receive, send
            )
        return self

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.messages).decode()

    @property
    def events(self) -> list[dict[str, Any]]:
        lines = [line.removeprefix("data: ") for line in self.text.split("\n") if line.startswith("data: ")]
        return [json.loads(line) for line in lines]


class TestStream:
    def test_what_comes_is_sent_and_so_is_what_was_missed(self, feed: SqlFeed) -> None:
        told(feed, "before")

        async def play() -> Reader:
            reader = Reader(Streams(feed, Words(()), HURRIED))
            async with anyio.create_task_group() as group:
                group.start_soon(reader.run, lambda text: "after" in text)
                await anyio.sleep(0.02)
                told(feed, "after")
            return reader

        reader = anyio.run(play)
        assert [event["reason"]["text"] for event in reader.events] == ["it is before", "it is after"]
        assert [event["sequence"] for event in reader.events] == [1, 2]
        assert "id: 2\nevent: parked\ndata: {" in reader.text

    def test_without_a_number_it_begins_now(self, feed: SqlFeed) -> None:
        told(feed, "before")
        reader = anyio.run(Reader(Streams(feed, Words(()), HURRIED), None).run, lambda text: ": all is well" in text)
        assert reader.events == []
        assert "id: 1\n\n" in reader.text

    def test_beats_tell_how_far_was_looked_though_nothing_was_asked_for(self, feed: SqlFeed) -> None:
        for number in range(3):
            told(feed, f"t{number}")
        only = FeedFilter(frozenset({FactKind.FAILED}))
        reader = anyio.run(Reader(Streams(feed, Words(()), HURRIED), 0, only).run, lambda text: "id: 3" in text)
        assert reader.events == []

    def test_what_is_not_kept_any_more_is_said(self, feed: SqlFeed) -> None:
        for number in range(3):
            told(feed, f"t{number}")
        feed.forget(2**60, 2)
        reader = anyio.run(Reader(Streams(feed, Words(()), HURRIED), 1).run, lambda text: "t2" in text)
        assert "event: gap" in reader.text
        assert reader.events[0] == {"asked_after": 1, "begins_after": 2}
        later = anyio.run(Reader(Streams(feed, Words(()), HURRIED), 99).run, lambda text: "gap" in text)
        assert later.events == [{"asked_after": 99, "begins_after": 3}]

    def test_t10_a_name_ends_no_event_and_makes_none(self, feed: SqlFeed) -> None:
        told(feed, _HOSTILE)
        reader = anyio.run(Reader(Streams(feed, Words(()), HURRIED)).run, lambda text: "parked" in text)
        (event,) = reader.events
        assert TableName.parse(event["table"]).name == _HOSTILE
        assert [line for line in reader.text.split("\n") if line.startswith("event: ")] == ["event: parked"]

    def test_t13_who_does_not_read_is_cut_off_and_others_are_not(self, feed: SqlFeed) -> None:
        streams = Streams(feed, Words(()), HURRIED)

        async def play() -> tuple[Reader, Reader]:
            stuck, fine = Reader(streams, reads=2), Reader(streams)
            async with anyio.create_task_group() as group:
                group.start_soon(stuck.run)
                group.start_soon(fine.run, lambda text: "t1" in text)
                await anyio.sleep(0.05)
                told(feed, "t1")
            return stuck, fine

        stuck, fine = anyio.run(play)
        assert len(stuck.messages) == 2  # it ended, though its client never made room again
        assert [event["reason"]["text"] for event in fine.events] == ["it is t1"]
        assert streams.open == 0

    def test_t13_there_are_only_so_many(self, feed: SqlFeed) -> None:
        streams = Streams(feed, Words(()), HURRIED)
        ending = threading.Event()
        streams.is_ending = ending.is_set

        async def play() -> list[Reader]:
            readers = [Reader(streams) for _ in range(4)]
            async with anyio.create_task_group() as group:
                for reader in readers:
                    group.start_soon(reader.run)
                while not any(reader.messages and reader.messages[0]["status"] == 503 for reader in readers):  # noqa: ASYNC110 - any of them
                    await anyio.sleep(0.01)
                assert streams.open == 3
                ending.set()
            return readers

        readers = anyio.run(play)
        assert sorted(reader.messages[0]["status"] for reader in readers) == [200, 200, 200, 503]
        assert streams.open == 0
        (refused,) = [reader for reader in readers if reader.messages[0]["status"] == 503]
        assert json.loads(refused.text)["code"] == "unavailable"

    def test_t13_nobody_takes_all_of_them_and_some_are_left_to_who_may_read_everything(self, feed: SqlFeed) -> None:
        streams = Streams(feed, Words(()), Pace(streams_max=6, each_max=2, kept_back=2))

        def principal(name: str, scope: str) -> Principal:
            return Principal(name, (Grant(Role.VIEWER, Scope.parse(scope)),))

        a, b, c = (principal(name, "lake.db") for name in "abc")
        assert [streams.enter(one) for one in (a, a, a, b)] == ["", "", "a has 2 streams already", ""]
        assert [streams.enter(one) for one in (c, b)] == ["", "there are too many streams already"]
        everywhere = principal("e", "*")
        assert [streams.enter(one) for one in (everywhere, OWNER)] == ["", ""]
        assert (streams.enter(OWNER), streams.open) == ("there are too many streams already", 6)
        for one in (a, b, OWNER):
            streams.leave(one)
        assert [streams.enter(one) for one in (a, a, b)] == [
            "",
            "a has 2 streams already",
            "there are too many streams already",
        ]

    def test_t13_streams_are_counted_by_who_asks_for_them(self, served: Served) -> None:
        served.app.state.streams.pace.each_max = 0
        refused = problem(served.http.get(f"{V1}/feed/stream"), 503, "unavailable")
        assert refused["detail"] == "owner has 0 streams already"

    def test_t1_it_does_not_outlive_its_leave(self, feed: SqlFeed) -> None:
        reader = anyio.run(Reader(Streams(feed, Words(()), Pace(look_s=0.01, life_s=0.05))).run)
        assert reader.messages[-1]["more_body"] is False

    @pytest.mark.parametrize("busy", [False, True])
    def test_t1_t11_who_would_not_be_let_in_any_more_is_told_no_more(self, feed: SqlFeed, *, busy: bool) -> None:
        asked: list[str] = []

        def stands() -> bool:
            asked.append("")
            if len(asked) == 2:
                raise StoreUnavailable("nobody knows")
            return len(asked) < 4

        def until(_text: str) -> bool:
            if busy:
                told(feed, f"t{len(asked)}")
            return False

        reader = anyio.run(Reader(Streams(feed, Words(()), HURRIED), stands=stands).run, until)
        assert (len(asked), reader.messages[-1]["more_body"]) == (4, False)

    def test_t11_a_stream_ends_with_the_token_that_it_was_asked_for_with(
        self, served: Served, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found: list[EventStream] = []

        async def kept(stream: EventStream, _scope: object, _receive: object, send: Callable[[Message], Any]) -> None:
            found.append(stream)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        monkeypatch.setattr(EventStream, "__call__", kept)
        given = served.post("/tokens", NewToken("ci", (Role.VIEWER,), ("*",)))
        for token in (TOKEN, given["token"]):
            served.client({"Authorization": f"Bearer {token}"}).get(f"{V1}/feed/stream")
        assert [stream._stands() for stream in found] == [True, True]
        served.post("/tokens/ci/revoke")
        assert [stream._stands() for stream in found] == [True, False]

    def test_it_ends_in_order_with_the_server(self, feed: SqlFeed) -> None:
        streams = Streams(feed, Words(()), HURRIED)
        ended = threading.Event()
        streams.is_ending = ended.is_set

        def until(_text: str) -> bool:
            ended.set()
            return False

        reader = anyio.run(Reader(streams).run, until)
        assert reader.messages[-1] == {"type": "http.response.body", "body": b"", "more_body": False}

    def test_a_store_that_is_away_for_a_while_ends_no_stream(self) -> None:
        away = Away()
        reader = anyio.run(Reader(Streams(away, Words(()), HURRIED)).run, lambda text: "it is there" in text)
        assert [event["reason"]["text"] for event in reader.events] == ["it is there"]
        assert away.refused == 4


class Away(SqlFeed):
    """A feed that does not answer the first times, and has a fact then."""

    def __init__(self) -> None:
        super().__init__(new_store(), ManualClock())
        self.refused = 0

    def last(self) -> int:
        if self.refused < 4:
            self.refused += 1
            raise StoreUnavailable("the store does not answer")
        told(self, "there")
        return super().last()


class TestRealServer:
    def test_the_client_follows_what_happens(self, served: Served) -> None:
        feed = served.control.tasks.feed
        told(feed, "t0")
        found: list[int] = []
        with running(served) as url, Client(url, TOKEN) as client:
            for fact in client.follow(after=0):
                found.append(fact["sequence"])
                if len(found) == 2:
                    break
                told(feed, "t1")
        assert found == [1, 2]

    def test_a_stream_that_ends_is_taken_up_where_it_ended(self, served: Served) -> None:
        feed = served.control.tasks.feed
        told(feed, "t0")
        with running(served) as url, httpx2.Client(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            facts = followed(http, f"{url}{V1}/feed/stream", 0, retry_s=0.01)
            assert next(facts)["sequence"] == 1
            ending = iter([True])
            served.app.state.streams.is_ending = lambda: next(ending, False)
            told(feed, "t1")
            told(feed, "t2")
            assert [next(facts)["sequence"], next(facts)["sequence"]] == [2, 3]
            facts.close()

    def test_what_the_server_refuses_is_said(self, served: Served) -> None:
        with running(served) as url:
            with Client(url, "wrong") as client, pytest.raises(Rejected):
                next(client.follow())
            served.app.state.streams.pace.streams_max = 0
            with Client(url, TOKEN) as client, pytest.raises(Unavailable, match="does not open"):
                next(client.follow())


@contextmanager
def running(served: Served) -> Iterator[str]:
    """The application on loopback."""
    with listen("127.0.0.1", 0) as listening:
        port = int(listening.getsockname()[1])
        app = create_app(
            served.control, Access(TOKEN, loopback_hosts("127.0.0.1", port), served.access.identities, served.audit)
        )
        served.app = app
        app.state.streams.pace.look_s = 0.01
        web = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
        app.state.streams.is_ending = lambda: web.should_exit
        with serving_web(web, listening):
            yield f"http://127.0.0.1:{port}"
