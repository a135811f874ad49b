"""Tokens, logging in, and the audit, from the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from icewright.audit.sql import SqlAudit
from icewright.core.errors import Unavailable
from icewright.identity.sql import SqlIdentities
from icewright.model.access.identity import NewCode, digest
from icewright.model.access.permissions import OWNER, Grant, Principal, Role
from icewright.store.schema_access import audit
from icewright.store.transactions import writing
from icewright.terminal.address import read_address
from tests.builders.command_line import icewright, within
from tests.lakes.house import House


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    with within(House(tmp_path), monkeypatch) as made:
        yield made


@pytest.mark.usefixtures("house")
def test_a_token_is_created_used_listed_and_revoked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no tokens but the server's own" in icewright("token", "list").out
    made = icewright("token", "create", "ci", "--role", "viewer", "--scope", "lake.db", "--expires", "2d")
    token = made.out.strip()
    assert (made.status, token[:4], "viewer on lake.db" in made.err) == (0, "icw_", True)
    listed = icewright("token", "list")
    assert ("viewer on lake.db" in listed.out, token[:8] in listed.out, token in listed.out) == (True, True, False)
    monkeypatch.setenv("ICEWRIGHT_TOKEN", token)
    refused = icewright("token", "list")
    assert (refused.status, "token:ci lacks the permission `administer` on everything" in refused.err) == (2, True)
    assert "roles that have it: platform-admin" in refused.err
    monkeypatch.delenv("ICEWRIGHT_TOKEN")
    assert icewright("token", "revoke", "ci").status == 0
    assert "revoked" in icewright("token", "list").out
    monkeypatch.setenv("ICEWRIGHT_TOKEN", token)
    refused = icewright("status")
    assert (refused.status, "a token that is valid" in refused.err) == (2, True)


@pytest.mark.parametrize("expires", ["", "0d", "90", "1y", "-1d", "9999999d"])
@pytest.mark.usefixtures("house")
def test_a_time_that_is_none_is_wrong_use(expires: str) -> None:
    assert icewright("token", "create", "ci", "--role", "viewer", "--scope", "*", "--expires", expires).status == 2


@pytest.mark.usefixtures("house")
def test_somebody_logs_in_with_a_token_from_a_file_and_out_again(tmp_path: Path) -> None:
    token = icewright("token", "create", "ada", "--role", "operator", "--scope", "*", "--expires", "never").out
    (tmp_path / "secret").write_text(token)
    url = read_address(tmp_path / "state" / "server.json").url
    said = icewright("login", url, "--token-file", "secret", "--json")
    assert (said.json["name"], said.json["permissions"]) == ("token:ada", ["operate", "read", "report", "undo"])
    assert (tmp_path / "state" / "login.json").stat().st_mode & 0o777 == 0o600
    assert icewright("token", "list").status == 2
    assert "/?token=" in icewright("login").out
    assert icewright("logout").out == "logged out\n"
    assert icewright("token", "list").status == 0
    (tmp_path / "secret").write_text("icw_wrong")
    assert icewright("login", url, "--token-file", "secret").status == 2
    assert not (tmp_path / "state" / "login.json").exists()


def test_t11_somebody_takes_a_session_to_the_command_line_and_ends_it(house: House, tmp_path: Path) -> None:
    identities = SqlIdentities(house.engine, house.clock)
    identities.add_code(digest("icc_code"), NewCode(OWNER, 60_000, is_program=True))
    (tmp_path / "code").write_text("icc_code\n")
    url = read_address(tmp_path / "state" / "server.json").url
    assert icewright("login", url, "--token-file", "code", "--json").json["name"] == "owner"
    kept = read_address(tmp_path / "state" / "login.json").token
    assert kept.startswith("ics_")
    listed = icewright("session", "list")
    assert ("program" in listed.out, kept in listed.out) == (True, False)
    store = Path(str(house.engine.url.database))
    stored = b"".join(path.read_bytes() for path in store.parent.glob(f"{store.name}*"))  # with its log
    assert digest(kept).encode() in stored, "of the secret its digest is kept"
    assert not any(secret in stored for secret in (kept.encode(), b"icc_code"))
    again = icewright("login", url, "--token-file", "code")
    assert (again.status, "the code opens nothing" in again.err, "/login/program" in again.err) == (2, True, True)
    assert read_address(tmp_path / "state" / "login.json").token == kept
    assert icewright("logout").out == "logged out\n"
    assert identities.sessions(limit=9) == []
    for number in range(2):  # the second one takes the place of the first, whose secret nobody has any more
        identities.add_code(digest(f"icc_{number}"), NewCode(OWNER, 60_000, is_program=True))
        (tmp_path / "code").write_text(f"icc_{number}")
        icewright("login", url, "--token-file", "code")
    assert len(identities.sessions(limit=9)) == 1
    identities.end_sessions("owner")
    refused = icewright("status")
    assert (refused.status, "`icewright login URL` ends" in refused.err) == (2, True)
    gone = icewright("logout")
    assert (gone.out, "was not ended" in gone.err) == ("logged out\n", True)
    assert not (tmp_path / "state" / "login.json").exists()


def test_t11_a_log_in_that_fails_ends_the_session_that_it_opened_and_no_other(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identities = SqlIdentities(house.engine, house.clock)
    for code in ("icc_first", "icc_second"):
        identities.add_code(digest(code), NewCode(OWNER, 60_000, is_program=True))
        (tmp_path / code).write_text(code)
    url = read_address(tmp_path / "state" / "server.json").url
    icewright("login", url, "--token-file", "icc_first")
    kept = read_address(tmp_path / "state" / "login.json").token
    (tmp_path / "kept").write_text(kept)

    def full(*_what: object) -> None:
        raise Unavailable("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("icewright.identity.cli.write_address", full)
        for file in ("icc_second", "kept"):
            assert "the disk is full" in icewright("login", url, "--token-file", file).err
    (left,) = identities.sessions(limit=9)
    assert left.session_id == digest(kept)[:16]
    said = [entry.action for entry in SqlAudit(house.engine, house.clock).latest(limit=99)]
    of_sessions = [action for action in said if action.startswith("session.")]
    assert of_sessions == ["session.ended", "session.opened", "session.opened"]


def test_t11_sessions_are_listed_and_ended(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    assert icewright("session", "list").out == "no session is open\n"
    identities = SqlIdentities(house.engine, house.clock)
    ada = Principal("person:https://login.example.com#ada", (Grant(Role.VIEWER),), "Ada")
    for of_cookie, principal in (("1" * 64, ada), ("2" * 64, ada), ("3" * 64, OWNER), ("4" * 64, ada)):
        identities.open_session(of_cookie, principal, ("groups=data-eng",))
    listed = icewright("session", "list")
    assert "person:https://login.example.com#ada (Ada)  provider" in listed.out
    assert "nothing any more" in listed.out, "this server has no provider, so nobody's session opens anything"
    assert "viewer on *" in icewright("session", "list", "--own").out
    assert len(icewright("session", "list", "--person", ada.name, "--json").json["items"]) == 3
    said = icewright("session", "end", "1" * 16, "--show-api")
    assert said.out.startswith(f"1111111111111111 ended: {ada.name} (Ada), logged in since ")
    assert "/sessions/1111111111111111/end" in said.err
    assert icewright("session", "end", "1" * 16).status == 2
    ended = icewright("session", "end", "--person", ada.name, "--json").json["sessions"]
    assert [one["session_id"][0] for one in ended] == ["4", "2"]
    assert icewright("session", "end", "--person", ada.name).status == 2
    assert "3333333333333333 ended: owner" in icewright("session", "end", "--own").out
    assert icewright("session", "end", "--own").out == "you have no session\n"
    token = icewright("token", "create", "ci", "--role", "viewer", "--scope", "*").out.strip()
    monkeypatch.setenv("ICEWRIGHT_TOKEN", token)
    refused = icewright("session", "list")
    assert (refused.status, "lacks the permission `administer`" in refused.err) == (2, True)
    assert icewright("session", "list", "--own").status == 0


@pytest.mark.parametrize("wrong", [(), ("a", "--own"), ("a", "--person", "b"), ("--own", "--person", "b")])
@pytest.mark.usefixtures("house")
def test_which_sessions_end_has_to_be_said(wrong: tuple[str, ...]) -> None:
    assert icewright("session", "end", *wrong).status == 2
    assert icewright("session", "list", "--own", "--person", "b").status == 2


def test_t12_the_audit_is_listed_exported_and_verified(house: House, tmp_path: Path) -> None:
    icewright("token", "create", "ci", "--role", "viewer", "--scope", "*")
    listed = icewright("audit", "list")
    assert ("token.created" in listed.out, "owner" in listed.out) == (True, True)
    verified = icewright("audit", "verify", "--json")
    head = verified.json["head"]
    assert (verified.status, head["number"]) == (0, 2)
    exported = icewright("audit", "export").out
    assert json.loads(exported.splitlines()[1])["action"] == "api"
    (tmp_path / "audit.jsonl").write_text(exported)
    assert icewright("audit", "verify", "--file", "audit.jsonl").status == 0
    (tmp_path / "audit.jsonl").write_text("\n".join(exported.splitlines()[:-1]))
    taken = f"{head['number']}:{head['hash']}"
    said = icewright("audit", "verify", "--file", "audit.jsonl", "--head", taken)
    assert (said.status, "it is cut off: entry 2 was there" in said.out) == (1, True)
    assert icewright("audit", "verify", "--head", taken).status == 0
    assert icewright("audit", "verify", "--head", "2:x").status == 2
    assert icewright("token", "create", "other", "--role", "viewer", "--scope", "*").status == 0
    (tmp_path / "older.jsonl").write_text(icewright("audit", "export").out)
    assert SqlAudit(house.engine).prune(2**62, 3) == 3
    said = icewright("audit", "verify", "--head", taken)
    assert (said.status, "entry 2 no longer exists: this head proves nothing now" in said.out) == (1, True)
    assert icewright("audit", "verify", "--head", taken, "--json").json["unproven"] == [head]
    assert icewright("audit", "verify", "--head", taken, "--before", "older.jsonl").status == 0
    with writing(house.engine) as connection:
        connection.execute(update(audit).where(audit.c.number == 4).values(principal='"nobody"'))
    said = icewright("audit", "verify")
    assert (said.status, said.out) == (1, "entry 4: it was changed\n")
