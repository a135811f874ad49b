"""What is particular to the quarantines of local disks and of S3: lost answers, races, and stores that do less."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError
from botocore.response import StreamingBody
from urllib3.exceptions import ProtocolError

from icewright.actions.remove_files.adapters import local_quarantine, s3_quarantine
from icewright.actions.remove_files.adapters.s3_quarantine import S3Quarantine
from icewright.catalogs.storage.s3 import S3Client, S3Objects
from icewright.core.errors import (
    Conflict,
    IcewrightError,
    InvalidConfiguration,
    NotAllowed,
    OutcomeUnknown,
    StorageUnavailable,
    Unreadable,
    Unsupported,
)
from icewright.model.actions.deletion import Held, Intent, IntentState, Step, settled
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import ListedObject
from tests.contracts.storages import HELD, Local, OnS3, Storage
from tests.narrowing import not_none
from tests.servers.processes import HOST, free_port
from tests.servers.s3 import SECRET_KEY, S3Server

RUN, KEY, CONTENT = "run-1", "t/data/x", b"all of it"
VERSIONS = [None, "Enabled", "Suspended"]


def listed(store: Storage, key: str = KEY) -> ListedObject:
    return replace(not_none(store.objects.stat(store.at(key))), version_id=None)


def on_s3(s3: S3Server, versions: str | None = None) -> OnS3:
    store = OnS3(s3, versions=versions)
    store.put(KEY, CONTENT)
    return store


Act = Callable[[str, dict[str, Any], Callable[[], Any]], Any]
"""What happens at a call: its name, what it asks for, and the call."""


class Calls:
    """A client's calls, with something happening to one of them."""

    def __init__(self, client: Any, act: Act) -> None:
        self._client, self._act = client, act

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        return lambda *what, **asked: self._act(name, asked, lambda: call(*what, **asked))


def as_it_is(_name: str, _asked: dict[str, Any], do: Callable[[], Any]) -> Any:
    return do()


class Meddled(S3Client):
    def __init__(self, s3: S3Server, on_write: Act = as_it_is, on_read: Act = as_it_is) -> None:
        super().__init__(s3.file_io)
        self._on_write, self._on_read = on_write, on_read

    @property
    def writes(self) -> Any:
        return Calls(super().writes, self._on_write)

    @property
    def reads(self) -> Any:
        return Calls(super().reads, self._on_read)


def meddled(store: OnS3, on_write: Act = as_it_is, on_read: Act = as_it_is) -> S3Quarantine:
    return S3Quarantine(Meddled(store.server, on_write, on_read), [store.at(HELD)])


def losing(left: list[int], made: list[str], *, happened: bool) -> Act:
    """The answer behind so many calls is lost, to one that had its effect or not; all calls are noted."""

    def lose(name: str, _asked: dict[str, Any], do: Callable[[], Any]) -> Any:
        left[0] -= 1
        made.append(name)
        if left[0] == -1:
            if happened:
                do()
            raise ConnectionClosedError(endpoint_url="http://s3")
        return do()

    return lose


@pytest.mark.parametrize("versions", VERSIONS)
@pytest.mark.parametrize("happened", [True, False])
@pytest.mark.parametrize("call", range(5))
def test_c1_whichever_answer_of_s3_is_lost_the_bytes_are_found(
    s3: S3Server, versions: str | None, call: int, *, happened: bool
) -> None:
    """Calls are: two of the trial, its end, then the copy and the delete, or the delete alone."""
    store = on_s3(s3, versions)
    expected, left, made = listed(store), [call], list[str]()
    quarantine = meddled(store, losing(left, made, happened=happened))
    intent = Intent(RUN, 0, expected, 1, IntentState.UNKNOWN, 1, 1, Step.QUARANTINE)
    try:
        held = quarantine.quarantine(RUN, expected)
        intent = replace(intent, state=IntentState.QUARANTINED, held=held)
    except (OutcomeUnknown, StorageUnavailable):
        assert len(made) == call + 1  # nothing was said a second time
        intent = settled(intent, quarantine.look(RUN, expected))
    left[0] = -2
    if intent.state is IntentState.PLANNED:
        assert store.objects.read(expected.path, 100) == CONTENT
        intent = replace(intent, state=IntentState.QUARANTINED, held=quarantine.quarantine(RUN, expected))
    assert intent.state is IntentState.QUARANTINED
    assert intent.held is not None
    assert store.objects.stat(expected.path) is None
    quarantine.restore(RUN, expected, intent.held)
    assert store.objects.read(expected.path, 100) == CONTENT


@pytest.mark.parametrize("happened", [True, False])
@pytest.mark.parametrize("versions", VERSIONS)
@pytest.mark.parametrize("call", range(2))
def test_c1_a_lost_answer_on_the_way_back_is_found_too(
    s3: S3Server, versions: str | None, call: int, *, happened: bool
) -> None:
    store = on_s3(s3, versions)
    expected = listed(store)
    held = store.quarantine.quarantine(RUN, expected)
    quarantine = meddled(store, losing([call], [], happened=happened))
    intent = Intent(RUN, 0, expected, 1, IntentState.UNKNOWN, 1, 1, Step.RESTORE, held=held)
    try:
        quarantine.restore(RUN, expected, held)
    except OutcomeUnknown:
        intent = settled(intent, quarantine.look(RUN, expected))
        if intent.state is IntentState.QUARANTINED:
            quarantine.restore(RUN, expected, held)
        else:
            assert intent.state is IntentState.RESTORED
    assert store.objects.read(expected.path, 100) == CONTENT
    assert list(store.objects.list(store.at(HELD))) == []


@pytest.mark.parametrize("versions", VERSIONS)
def test_a_store_that_deletes_whatever_the_etag_is_refused(s3: S3Server, versions: str | None) -> None:
    store = on_s3(s3, versions)

    def ignore(_name: str, asked: dict[str, Any], do: Callable[[], Any]) -> Any:
        asked.pop("IfMatch", None)
        return do()

    with pytest.raises(NotAllowed, match="If-Match"):
        meddled(store, ignore).quarantine(RUN, listed(store))
    assert store.objects.read(store.at(KEY), 100) == CONTENT


@pytest.mark.parametrize("versions", VERSIONS)
def test_what_is_written_between_the_look_and_the_delete_stays(s3: S3Server, versions: str | None) -> None:
    store = on_s3(s3, versions)

    def write_first(name: str, asked: dict[str, Any], do: Callable[[], Any]) -> Any:
        if name == "delete_object" and asked["Key"] == KEY:
            store.put(KEY, CONTENT[::-1])
        return do()

    quarantine, expected = meddled(store, write_first), listed(store)
    with pytest.raises(Conflict):
        quarantine.quarantine(RUN, expected)
    assert store.objects.read(store.at(KEY), 100) == CONTENT[::-1]
    assert quarantine.look(RUN, expected).held is None


def test_a_copy_that_is_not_the_same_lets_nothing_be_deleted(s3: S3Server) -> None:
    store = on_s3(s3)

    def spoil(name: str, asked: dict[str, Any], do: Callable[[], Any]) -> Any:
        answer = do()
        if name == "copy_object":
            store.put(asked["Key"], CONTENT[::-1])
        return answer

    with pytest.raises(OutcomeUnknown):
        meddled(store, spoil).quarantine(RUN, listed(store))
    assert store.objects.read(store.at(KEY), 100) == CONTENT


@pytest.mark.parametrize("same", [True, False])
def test_where_etags_are_no_digests_both_are_read(s3: S3Server, monkeypatch: pytest.MonkeyPatch, *, same: bool) -> None:
    store = on_s3(s3)
    monkeypatch.setattr(s3_quarantine, "_is_md5", lambda _etag, _head: False)
    monkeypatch.setattr(s3_quarantine, "_CHECKSUMS", ())
    monkeypatch.setattr(s3_quarantine, "_CHUNK_BYTES", 4)

    def maybe_spoil(name: str, asked: dict[str, Any], do: Callable[[], Any]) -> Any:
        answer = do()
        if name == "copy_object" and not same:
            store.put(asked["Key"], CONTENT[:-1] + b"!")
        return answer

    quarantine, expected = meddled(store, maybe_spoil), listed(store)
    if not same:
        with pytest.raises(OutcomeUnknown):
            quarantine.quarantine(RUN, expected)
    else:
        quarantine.restore(RUN, expected, quarantine.quarantine(RUN, expected))
    assert store.objects.read(store.at(KEY), 100) == CONTENT


def test_an_etag_is_a_digest_of_one_part_without_a_foreign_key_alone() -> None:
    md5 = "0" * 32
    assert s3_quarantine._is_md5(md5, {})
    assert s3_quarantine._is_md5(md5, {"ServerSideEncryption": "AES256"})
    assert not s3_quarantine._is_md5(f"{md5}-2", {})
    assert not s3_quarantine._is_md5(md5, {"ServerSideEncryption": "aws:kms"})
    assert not s3_quarantine._is_md5(md5, {"SSECustomerAlgorithm": "AES256"})


def test_what_one_request_cannot_copy_stays(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_quarantine, "COPY_BYTES_MAX", len(CONTENT) - 1)
    store = on_s3(s3)
    with pytest.raises(Unsupported, match="larger"):
        store.quarantine.quarantine(RUN, listed(store))
    assert store.objects.read(store.at(KEY), 100) == CONTENT
    versioned = on_s3(s3, "Enabled")
    versioned.quarantine.quarantine(RUN, listed(versioned))


def test_a_key_that_is_too_long_for_a_quarantine_stays(s3: S3Server) -> None:
    store = on_s3(s3)
    key = "t/" + "x" * 1018
    store.put(key, CONTENT)
    with pytest.raises(Unsupported):
        store.quarantine.quarantine(RUN, listed(store, key))
    assert store.objects.read(store.at(key), 100) == CONTENT


def test_purging_brings_no_older_version_to_light(s3: S3Server) -> None:
    store = OnS3(s3, versions="Enabled")
    store.put(KEY, b"older")
    store.put(KEY, CONTENT)
    expected = listed(store)
    held = store.quarantine.quarantine(RUN, expected)
    store.quarantine.purge(RUN, expected, held)
    assert store.objects.stat(expected.path) is None
    versions = store.s3.list_object_versions(Bucket=store.bucket)
    assert [one["VersionId"] for one in versions["DeleteMarkers"]] == [held.marker_id]
    assert held.version_id not in {one["VersionId"] for one in versions["Versions"]}


def test_what_somebody_has_brought_to_light_again_is_not_purged(s3: S3Server) -> None:
    """As a person does who takes a file back by hand: the marker goes, and the version is the object again."""
    store = on_s3(s3, "Enabled")
    expected = listed(store)
    held = store.quarantine.quarantine(RUN, expected)
    store.s3.delete_object(Bucket=store.bucket, Key=KEY, VersionId=held.marker_id)
    with pytest.raises(Conflict, match="exists again"):
        store.quarantine.purge(RUN, expected, held)
    assert store.objects.read(expected.path, 100) == CONTENT
    store.quarantine.restore(RUN, expected, held)
    assert store.objects.read(expected.path, 100) == CONTENT


def test_a_version_that_somebody_else_has_removed_is_said_to_be_gone(s3: S3Server) -> None:
    store = on_s3(s3, "Enabled")
    expected = listed(store)
    held = store.quarantine.quarantine(RUN, expected)
    store.s3.delete_object(Bucket=store.bucket, Key=KEY, VersionId=held.version_id)
    with pytest.raises(Conflict, match="does not exist"):
        store.quarantine.restore(RUN, expected, held)
    assert store.quarantine.look(RUN, expected).held is None


def test_a_marker_of_somebody_elses_is_left(s3: S3Server) -> None:
    store = on_s3(s3, "Enabled")
    expected = listed(store)
    held = store.quarantine.quarantine(RUN, expected)
    store.put(KEY, b"later")
    store.remove(KEY)
    with pytest.raises(Conflict):
        store.quarantine.restore(RUN, expected, held)
    assert store.objects.stat(expected.path) is None


class BreaksOff:
    """What is left of a body after its line has broken."""

    def read(self, _bytes_max: int | None = None) -> bytes:
        raise ProtocolError(f"Connection broken: {SECRET_KEY}")

    def close(self) -> None:
        """There is nothing left to close."""


def break_off(name: str, _asked: dict[str, Any], do: Callable[[], Any]) -> Any:
    answer = do()
    if name == "get_object":
        answer["Body"].close()
        answer["Body"] = StreamingBody(BreaksOff(), len(CONTENT))
    return answer


def test_a_body_that_breaks_off_is_a_store_that_is_away(s3: S3Server) -> None:
    store = on_s3(s3)
    with pytest.raises(StorageUnavailable) as found:
        S3Objects(Meddled(s3, on_read=break_off)).read(store.at(KEY), 100)
    tells_no_secret(found.value)


def test_a_copy_whose_bytes_break_off_lets_nothing_be_deleted(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    store = on_s3(s3)
    monkeypatch.setattr(s3_quarantine, "_is_md5", lambda _etag, _head: False)
    monkeypatch.setattr(s3_quarantine, "_CHECKSUMS", ())
    with pytest.raises(StorageUnavailable) as found:
        meddled(store, on_read=break_off).quarantine(RUN, listed(store))
    tells_no_secret(found.value)
    assert store.objects.read(store.at(KEY), 100) == CONTENT


def tells_no_secret(error: BaseException) -> None:
    """Neither does anything that a log would print below it."""
    assert isinstance(error, IcewrightError)
    told = "".join(traceback.format_exception(error))
    assert type(error).__name__ in told
    assert SECRET_KEY not in told + error.message + error.hint + repr(error)


@pytest.mark.parametrize(
    ("endpoint", "told"),
    [
        (f"http://user:{SECRET_KEY}@{HOST}:PORT", StorageUnavailable),
        (f"http://no host/{SECRET_KEY}", InvalidConfiguration),
        (f"{HOST}:9000/{SECRET_KEY}", InvalidConfiguration),
    ],
)
def test_an_s3_that_is_away_or_nowhere_is_told_of_without_secrets(
    s3: S3Server, endpoint: str, told: type[IcewrightError]
) -> None:
    store = on_s3(s3)
    endpoint = endpoint.replace("PORT", str(free_port()))  # picked here: one that is free by now
    client = S3Client({**s3.file_io, "s3.endpoint": endpoint, "s3.connect-timeout": "1"})
    objects, expected = S3Objects(client), listed(store)
    asked: list[Callable[[], object]] = [
        lambda: objects.now(expected.path),
        lambda: objects.stat(expected.path),
        lambda: objects.read(expected.path, 100),
        lambda: list(objects.list(expected.path)),
        lambda: S3Quarantine(client, [store.at(HELD)]).quarantine(RUN, expected),
    ]
    for ask in asked:
        with pytest.raises(told) as found:
            ask()
        tells_no_secret(found.value)


@pytest.mark.parametrize("status", [0, 400, 403, 404, 409, 412, 500, 503])
def test_what_a_store_says_that_refuses_is_told_without_secrets(s3: S3Server, status: int) -> None:
    store = on_s3(s3)

    def refuse(name: str, _asked: dict[str, Any], _do: Callable[[], Any]) -> Any:
        if status == 0:
            raise ConnectionClosedError(endpoint_url=f"http://{SECRET_KEY}@s3")
        error = {"Code": "Refused", "Message": f"the key {SECRET_KEY} is not known"}
        raise ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}, name)

    objects, expected = S3Objects(Meddled(s3, on_read=refuse)), listed(store)
    held = store.quarantine.quarantine(RUN, expected)
    asked: list[Callable[[], object]] = [
        lambda: objects.now(expected.path),
        lambda: objects.read(expected.path, 100),
        lambda: list(objects.list(expected.path)),
        lambda: meddled(store, refuse).restore(RUN, expected, held),
        lambda: meddled(store, refuse).purge(RUN, expected, held),
        lambda: meddled(store, refuse).quarantine(RUN, expected),
        lambda: meddled(store, on_read=refuse).quarantine(RUN, expected),
    ]
    for ask in asked:
        with pytest.raises(IcewrightError) as found:
            ask()
        tells_no_secret(found.value)


def test_a_bucket_that_is_not_there_is_told_of(s3: S3Server) -> None:
    store = on_s3(s3)
    with pytest.raises(Unreadable):
        list(store.objects.list(CanonicalPath("s3://no-such-bucket/t")))
    assert store.objects.now(CanonicalPath("s3://no-such-bucket/t")) > 0


def test_a_role_cannot_be_taken_yet(s3: S3Server) -> None:
    with pytest.raises(Unsupported):
        _ = S3Client({**s3.file_io, "s3.role-arn": "arn:aws:iam::1:role/x"}).reads


# Local disks.


@pytest.fixture
def local(tmp_path: Path) -> Local:
    store = Local(tmp_path.resolve())
    store.put(KEY, CONTENT)
    return store


def test_a_file_that_is_replaced_at_the_last_moment_is_put_back(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, rename = listed(local), os.rename

    def replaced(source: str, target: str) -> None:
        (local.folder / "new").write_bytes(CONTENT[::-1])
        rename(local.folder / "new", source)
        rename(source, target)

    monkeypatch.setattr(os, "rename", replaced)
    with pytest.raises(Conflict):
        local.quarantine.quarantine(RUN, expected)
    assert local.objects.read(expected.path, 100) == CONTENT[::-1]
    assert list(local.objects.list(local.at(HELD))) == []


def test_a_file_is_back_under_one_name_though_the_process_died_between_two(local: Local) -> None:
    expected = listed(local)
    held = local.quarantine.quarantine(RUN, expected)
    os.link(held.place.removeprefix("file://"), local.folder / KEY)
    local.quarantine.restore(RUN, expected, held)
    assert local.objects.read(expected.path, 100) == CONTENT
    assert (local.folder / KEY).stat().st_nlink == 1


def test_a_file_on_another_file_system_stays(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_quarantine, "_device", lambda file: HELD in file)
    for act in (lambda: local.quarantine.check(local.at(KEY)), lambda: local.quarantine.quarantine(RUN, listed(local))):
        with pytest.raises(NotAllowed):
            act()
    assert local.objects.read(local.at(KEY), 100) == CONTENT


@pytest.mark.parametrize(
    ("number", "told"), [(18, Unsupported), (13, Unsupported), (5, OutcomeUnknown), (28, OutcomeUnknown)]
)
def test_what_the_system_says_tells_whether_it_may_have_happened(
    local: Local, monkeypatch: pytest.MonkeyPatch, number: int, told: type[IcewrightError]
) -> None:
    def refused(_source: str, _target: str) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "rename", refused)
    with pytest.raises(told):
        local.quarantine.quarantine(RUN, listed(local))
    assert local.objects.read(local.at(KEY), 100) == CONTENT


def test_w13_a_move_that_may_not_be_on_disk_is_of_unknown_outcome(
    local: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, fsync = listed(local), os.fsync
    synced = [0]

    def failing(file: int) -> None:
        synced[0] += 1
        if not (local.folder / KEY).exists():
            raise OSError(5, "Input/output error")
        fsync(file)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OutcomeUnknown):
        local.quarantine.quarantine(RUN, expected)
    assert synced[0]
    monkeypatch.undo()
    held = not_none(local.quarantine.look(RUN, expected).held)
    local.quarantine.restore(RUN, expected, held)
    assert local.objects.read(expected.path, 100) == CONTENT


def test_a_quarantine_that_is_no_directory_or_a_link_is_refused(local: Local) -> None:
    (local.folder / HELD).rmdir()
    with pytest.raises(NotAllowed):
        local.quarantine.quarantine(RUN, listed(local))
    (local.folder / "elsewhere").mkdir()
    (local.folder / HELD).symlink_to(local.folder / "elsewhere")
    with pytest.raises(Unsupported):
        local.quarantine.quarantine(RUN, listed(local))
    assert local.objects.read(local.at(KEY), 100) == CONTENT


def test_t8_nothing_outside_of_a_quarantine_is_purged_whatever_an_intent_says(local: Local) -> None:
    expected = listed(local)
    for place in (expected.path, local.at(f"{HELD}/../{KEY}"), local.at(f"{HELD}-2/x")):
        with pytest.raises(IcewrightError):
            local.quarantine.purge(RUN, expected, Held(CanonicalPath(place)))
    assert local.objects.read(expected.path, 100) == CONTENT


def test_a_file_comes_back_into_a_folder_that_was_removed_and_not_through_a_link(local: Local) -> None:
    expected = listed(local)
    held = local.quarantine.quarantine(RUN, expected)
    (local.folder / "t" / "data").rmdir()
    (local.folder / "outside").mkdir()
    (local.folder / "t" / "data").symlink_to(local.folder / "outside")
    with pytest.raises(Unsupported):
        local.quarantine.restore(RUN, expected, held)
    assert list((local.folder / "outside").iterdir()) == []
    (local.folder / "t" / "data").unlink()
    local.quarantine.restore(RUN, expected, held)
    assert local.objects.read(expected.path, 100) == CONTENT
