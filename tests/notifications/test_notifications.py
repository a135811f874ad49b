"""A server tells receivers: threads, secrets that are exchanged, a real receiver over TLS."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from pathlib import Path
from typing import cast

import pytest

from icewright.config.model import Config
from icewright.configuration.load import load_config
from icewright.core import system_clock
from icewright.core.errors import InvalidConfiguration
from icewright.model.events.feed import Fact, FactKind
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Reason
from icewright.notifications import wiring
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.owners import Owners
from icewright.notifications.senders.by_apprise import AppriseSender
from icewright.notifications.service import Notifications
from icewright.notifications.wiring import deliver_messages, open_delivery
from icewright.policy.source import PolicySource
from tests.builders.served import Served
from tests.cases import each_case
from tests.lakes.stores import new_store
from tests.servers.hooks import HOST, certificate, hooks
from tests.waiting import until

NEW, OLD = "whsec_" + base64.b64encode(b"n" * 32).decode(), "whsec_" + base64.b64encode(b"o" * 32).decode()


def config_of(folder: Path, port: int, *, host: str = "127.0.0.1", more: str = "") -> Config:
    ca_file, _ = certificate(folder)
    (folder / "icewright.toml").write_text(f"""
[notifications]
allowed_networks = ["127.0.0.0/8"]
ca_file = "{ca_file}"
[receivers.team]
kind = "webhook"
url = "https://{host}:{port}/hook"
secret = "env:NEW"
previous_secret = "file:{folder}/old"
interval_ms = 0
{more}
""")
    (folder / "old").write_text(OLD + "\n")
    return load_config(None, {"HOME": str(folder)}, folder)


def parked(number: int) -> Fact:
    name = TableName("lake", ("sales",), f"orders-{number}")
    return Fact(FactKind.PARKED, "lake", Reason("parked", "left alone"), TableId("lake", f"u{number}"), name)


def signed_by(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """As a receiver would verify it, by the text of the specification."""
    key = base64.b64decode(secret.split("_")[1])
    content = ".".join((headers["webhook-id"], headers["webhook-timestamp"], body.decode()))
    wanted = base64.b64encode(hmac.new(key, content.encode(), hashlib.sha256).digest()).decode()
    return f"v1,{wanted}" in headers["webhook-signature"].split()


def test_from_the_feed_to_a_receiver_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icewright.notifications.service.PAUSE_S", 0.02)
    served, before = Served(), threading.active_count()
    feed, store = served.control.tasks.feed, SqlMessages(served.engine, served.clock)
    owners = Owners(served.control.tables, PolicySource(), served.clock)
    with hooks(certificate(tmp_path)) as receiver:
        config = config_of(tmp_path, receiver.port)
        notifications = Notifications(open_delivery(config, {"NEW": NEW}, store), feed, owners, served.clock)
        with deliver_messages(notifications):
            until(lambda: store.state("team").position is not None)
            feed.tell(parked(1), "1")
            until(lambda: len(receiver.received) == 1)
            (tmp_path / "old").write_text(NEW)  # the old one is not accepted any more: no restart
            feed.tell(parked(2), "2")
            until(lambda: len(receiver.received) == 2)
    first, second = receiver.received
    assert signed_by(NEW, dict(first.headers), first.body)
    assert signed_by(OLD, dict(first.headers), first.body)
    assert not signed_by(OLD, dict(second.headers), second.body)
    document = json.loads(first.body)
    assert (document["type"], document["id"]) == ("icewright.facts", first.headers["webhook-id"])
    assert [fact["table"] for fact in document["data"]["facts"]] == ["lake.sales.orders-1"]
    assert [fact["kind"] for fact in document["data"]["facts"]] == ["parked"]
    assert threading.active_count() <= before + 1  # the receiver's own
    assert store.figures()["team"].sent == 2


def test_the_end_waits_once_for_all_receivers_that_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging:
        receivers = tuple(range(20))

        def run(self, stop: threading.Event, share: int, shares: int) -> None:
            pass

    waits = list[tuple[int, float]]()
    monkeypatch.setattr(system_clock, "join_all", lambda threads, within_s: waits.append((len(threads), within_s)))
    with deliver_messages(cast("Notifications", Hanging())):
        pass
    assert waits == [(wiring.THREADS_MAX, wiring._END_S)]


def test_without_receivers_there_are_no_threads(tmp_path: Path) -> None:
    before = threading.active_count()
    served = Served()
    config = load_config(None, {"HOME": str(tmp_path)}, tmp_path)
    owners = Owners(served.control.tables, PolicySource(), served.clock)
    found = open_delivery(config, {}, SqlMessages(new_store()))
    with deliver_messages(Notifications(found, served.control.tasks.feed, owners, served.clock)):
        assert threading.active_count() == before


@each_case(
    ("environ", "old", "said"),
    [
        ({}, OLD, "receivers.team.secret: the environment has no variable NEW"),
        ({"NEW": "too-short"}, OLD, "receivers.team.secret: not a secret"),
        ({"NEW": NEW}, "clear-text", "receivers.team.previous_secret: not a secret"),
    ],
)
def test_t1_a_secret_that_is_none_is_said_at_the_start_and_not_shown(
    tmp_path: Path, environ: dict[str, str], old: str, said: str
) -> None:
    config = config_of(tmp_path, 443, host=HOST)
    (tmp_path / "old").write_text(old)
    with pytest.raises(InvalidConfiguration) as refused:
        open_delivery(config, environ, SqlMessages(new_store()))
    assert said in refused.value.message
    assert not any(word in str(refused.value) for word in ("too-short", "clear-text", NEW, OLD))


def test_certificates_that_cannot_be_read_are_said_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "icewright.toml").write_text('[notifications]\nca_file = "/nowhere.pem"\n')
    config = load_config(None, {"HOME": str(tmp_path)}, tmp_path)
    with pytest.raises(InvalidConfiguration, match="ca_file"):
        open_delivery(config, {}, SqlMessages(new_store()))


def test_chats_go_by_a_process_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "icewright.toml").write_text('[receivers.chat]\nkind = "apprise"\nurl = "env:CHAT"\n')
    config = load_config(None, {"HOME": str(tmp_path)}, tmp_path)
    found = open_delivery(config, {"CHAT": "mmost://127.0.0.1:9/abcdefghijklmnopqrstuvwxyz"}, SqlMessages(new_store()))
    assert isinstance(found.senders["chat"], AppriseSender)
    with pytest.raises(InvalidConfiguration, match=r"receivers\.chat\.url"):
        open_delivery(config, {"CHAT": "syslog://"}, SqlMessages(new_store()))
