"""Objects of S3 moved out of the way, and back: behind a delete marker where there are versions, as a copy elsewhere.

Every delete is conditional on the etag (``If-Match``); a store that does not look at it, as a trial shows, is refused.
A bucket with versions keeps the object itself, so that nothing is copied and undoing is taking one marker away.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import zip_longest
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from icewright.catalogs.storage.s3 import S3Client, asking, bucket_and_key, code_of, head_of, http_status, listed
from icewright.core.errors import Conflict, NotAllowed, OutcomeUnknown, StorageUnavailable, Unsupported
from icewright.model.actions.deletion import Held, Whereabouts, same_object
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import ListedObject, prefix_of

COPY_BYTES_MAX: Final = 5 << 30
"""What one request copies at most (S3, "CopyObject")."""
_KEY_BYTES_MAX: Final = 1024
_MOVED: Final = frozenset({404, 409, 412})
"""Gone, being written by somebody else, or another object."""
_REFUSED: Final = frozenset({400, 401, 403, 405, 411, 501})
_MD5: Final = re.compile(r"[0-9a-f]{32}\Z")
_CHECKSUMS: Final = ("ChecksumSHA256", "ChecksumCRC64NVME", "ChecksumCRC32C", "ChecksumCRC32")
_CHUNK_BYTES: Final = 1 << 20
_UNVERSIONED: Final = (None, "null")


class S3Quarantine:
    """See the port. Each root is a prefix that serves its own bucket."""

    def __init__(
        self, client: S3Client, roots: Sequence[CanonicalPath], may_change: Callable[[], None] = lambda: None
    ) -> None:
        """``may_change`` is called right before each request that deletes: a move is several, and takes minutes.

        What it raises passes through.
        """
        self.roots: Sequence[CanonicalPath] = tuple(roots)
        self._client = client
        self._by_bucket = {bucket_and_key(root)[0]: prefix_of(root) for root in roots}
        self._conditional: dict[str, bool] = {}
        self._may_change = may_change

    def check(self, path: CanonicalPath) -> None:
        """Whether its bucket has a quarantine."""
        self._root(path)

    def quarantine(self, run_id: str, expected: ListedObject) -> Held:
        """Hide it behind a delete marker, or copy it and delete it; both only if its etag is still the same."""
        place = self._place(run_id, expected.path)
        head = self._unchanged(expected)
        self._require_conditional(expected.path)
        if head.get("VersionId") not in _UNVERSIONED:
            return self._hide(expected, head)
        return self._move(expected, head, place)

    def restore(self, _run_id: str, expected: ListedObject, held: Held) -> None:
        """Take the marker away, or copy the object back and delete the copy."""
        if held.marker_id is not None:
            self._unhide(expected, held)
            return
        self._require_held(held)
        kept = head_of(self._client, held.place, ChecksumMode="ENABLED")
        if kept is None:
            raise Conflict(f"{expected.path} is not in quarantine")
        found = head_of(self._client, expected.path, ChecksumMode="ENABLED")
        if found is None:
            with _step(expected.path):
                self._copy(held.place, expected.path, kept, IfNoneMatch="*")
            found = head_of(self._client, expected.path, ChecksumMode="ENABLED")
        if found is None:
            raise OutcomeUnknown(f"{expected.path} was copied back, and is not there")
        if not self._same_bytes((expected.path, found), (held.place, kept)):
            raise Conflict(f"there is something at {expected.path} now")
        self._remove(held.place, kept)

    def purge(self, _run_id: str, expected: ListedObject, held: Held) -> None:
        """Delete the version, or the copy. A marker is left where it still hides an older version."""
        if held.marker_id is None:
            self._require_held(held)
            kept = head_of(self._client, held.place)
            if kept is not None:
                self._remove(held.place, kept)
            return
        self._root(expected.path)
        if [version["VersionId"] for version in self._versions(expected.path)[:1]] == [held.version_id]:
            raise Conflict(f"{expected.path} exists again: its delete marker was removed")
        self._delete_version(expected.path, str(held.version_id))
        versions = self._versions(expected.path)
        if [version["VersionId"] for version in versions] == [held.marker_id]:
            self._delete_version(expected.path, held.marker_id)

    def look(self, run_id: str, expected: ListedObject) -> Whereabouts:
        """Both places, and what is behind a marker."""
        place = self._place(run_id, expected.path)
        head = head_of(self._client, expected.path)
        original = None if head is None else listed(expected.path, head["ContentLength"], head)
        kept = head_of(self._client, place)
        if kept is not None:
            return Whereabouts(original, Held(place, listed(place, kept["ContentLength"], kept).etag))
        return Whereabouts(original, None if original is not None else self._hidden(expected))

    def _hide(self, expected: ListedObject, head: Mapping[str, Any]) -> Held:
        bucket, key = bucket_and_key(expected.path)
        with _step(expected.path):
            answer = self._delete(Bucket=bucket, Key=key, IfMatch=head["ETag"])
        if not answer.get("DeleteMarker") or not answer.get("VersionId"):
            raise OutcomeUnknown(f"{expected.path} was deleted, and the store speaks of no delete marker")
        return Held(expected.path, expected.etag, head["VersionId"], answer["VersionId"])

    def _unhide(self, expected: ListedObject, held: Held) -> None:
        versions = self._versions(expected.path)
        if held.version_id not in [version["VersionId"] for version in versions]:
            raise Conflict(f"the version {held.version_id} of {expected.path} does not exist")
        if versions[0]["VersionId"] == held.version_id:
            return  # an earlier try took the marker away
        if versions[0]["VersionId"] != held.marker_id or versions[1]["ETag"] != expected.etag:
            raise Conflict(f"{expected.path} has been written or deleted since")
        self._delete_version(expected.path, str(held.marker_id))

    def _hidden(self, expected: ListedObject) -> Held | None:
        """The expected object right behind a marker."""
        match self._versions(expected.path):
            case [{"ETag": None, "VersionId": marker}, {"ETag": str(etag), "VersionId": version}, *_]:
                if etag == expected.etag and version not in _UNVERSIONED:
                    return Held(expected.path, etag, version, marker)
        return None

    def _move(self, expected: ListedObject, head: Mapping[str, Any], place: CanonicalPath) -> Held:
        if expected.size_bytes > COPY_BYTES_MAX:
            raise Unsupported(
                f"{expected.path} is larger than {COPY_BYTES_MAX} bytes, the most that is copied at once",
                hint="switch the versions of its bucket on: then nothing needs to be copied",
            )
        with _step(expected.path):
            self._copy(expected.path, place, head)
        kept = head_of(self._client, place, ChecksumMode="ENABLED")
        if kept is None or not self._same_bytes((expected.path, head), (place, kept)):
            raise OutcomeUnknown(f"the copy of {expected.path} in quarantine is not the same; nothing was deleted")
        bucket, key = bucket_and_key(expected.path)
        try:
            with _step(expected.path):
                self._delete(Bucket=bucket, Key=key, IfMatch=head["ETag"])
        except (Conflict, NotAllowed, Unsupported):
            self._remove(place, kept)  # it is certain that the original was not touched
            raise
        return Held(place, listed(place, kept["ContentLength"], kept).etag)

    def _copy(self, source: CanonicalPath, target: CanonicalPath, head: Mapping[str, Any], **conditions: str) -> None:
        from_bucket, from_key = bucket_and_key(source)
        bucket, key = bucket_and_key(target)
        self._client.writes.copy_object(
            Bucket=bucket,
            Key=key,
            CopySource={"Bucket": from_bucket, "Key": from_key},
            CopySourceIfMatch=head["ETag"],
            StorageClass=head.get("StorageClass", "STANDARD"),
            **conditions,
        )

    def _same_bytes(self, *heads: tuple[CanonicalPath, Mapping[str, Any]]) -> bool:
        """By size and by what the store says of both, where that is a digest; by reading both otherwise."""
        (_, one), (_, other) = heads
        if one["ContentLength"] != other["ContentLength"]:
            return False
        etags = [head["ETag"].strip('"') for _, head in heads]
        if all(_is_md5(etag, head) for etag, (_, head) in zip(etags, heads, strict=True)):
            return bool(etags[0] == etags[1])
        for checksum in _CHECKSUMS:
            if checksum in one and checksum in other and one.get("ChecksumType") == other.get("ChecksumType"):
                return bool(one[checksum] == other[checksum])
        chunks = zip_longest(*(self._chunks(path, head) for path, head in heads))
        return all(left == right for left, right in chunks)

    def _chunks(self, path: CanonicalPath, head: Mapping[str, Any]) -> Iterator[bytes]:
        """The digest of each MiB."""
        bucket, key = bucket_and_key(path)
        with asking(path):
            answer = self._client.reads.get_object(Bucket=bucket, Key=key, IfMatch=head["ETag"])
            with closing(answer["Body"]) as body:
                while chunk := body.read(_CHUNK_BYTES):
                    yield hashlib.sha256(chunk).digest()

    def _remove(self, place: CanonicalPath, head: Mapping[str, Any]) -> None:
        """Delete what lies in the quarantine."""
        bucket, key = bucket_and_key(place)
        version = head.get("VersionId")
        which = {"IfMatch": head["ETag"]} if version in _UNVERSIONED else {"VersionId": version}
        try:
            with _step(place):
                self._delete(Bucket=bucket, Key=key, **which)
        except Conflict as error:
            raise OutcomeUnknown(f"{place} in quarantine changed while it was to be deleted") from error

    def _delete(self, **which: Any) -> Mapping[str, Any]:
        self._may_change()
        answer: Mapping[str, Any] = self._client.writes.delete_object(**which)
        return answer

    def _delete_version(self, path: CanonicalPath, version_id: str) -> None:
        bucket, key = bucket_and_key(path)
        with _step(path):
            self._delete(Bucket=bucket, Key=key, VersionId=version_id)

    def _versions(self, path: CanonicalPath) -> list[dict[str, Any]]:
        """Versions and markers of one key, newest first; a marker's etag is None.

        The two kinds are listed apart, each by age; their times have seconds, and one of each is said to be latest.
        """
        bucket, key = bucket_and_key(path)
        found: list[dict[str, Any]] = []
        with asking(path):
            for page in self._client.reads.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=key):
                entries = [*page.get("DeleteMarkers", ()), *page.get("Versions", ())]
                found.extend(
                    {**entry, "ETag": entry["ETag"].strip('"') if "ETag" in entry else None}
                    for entry in entries
                    if entry["Key"] == key
                )
                if any(entry["Key"] > key for entry in entries):
                    break
        return sorted(found, key=lambda entry: (entry["IsLatest"], entry["LastModified"]), reverse=True)

    def _unchanged(self, expected: ListedObject) -> Mapping[str, Any]:
        head = head_of(self._client, expected.path, ChecksumMode="ENABLED")
        if head is None:
            raise Conflict(f"{expected.path} does not exist")
        if not same_object(expected, listed(expected.path, head["ContentLength"], head)):
            raise Conflict(f"{expected.path} is not what it was")
        return head

    def _require_conditional(self, path: CanonicalPath) -> None:
        """Whether the store looks at ``If-Match`` before it deletes: tried once on an object of our own."""
        bucket, prefix = bucket_and_key(CanonicalPath(self._root(path)))
        if bucket not in self._conditional:
            self._conditional[bucket] = self._try_conditional(bucket, f"{prefix}trial-{secrets.token_hex(8)}")
        if not self._conditional[bucket]:
            raise NotAllowed(
                f"the store of {bucket} deletes without looking at If-Match",
                hint="nothing is deleted there: a file that was written again could be lost",
            )

    def _try_conditional(self, bucket: str, key: str) -> bool:
        path = CanonicalPath(f"s3://{bucket}/{key}")
        try:
            with _step(path):
                put = self._client.writes.put_object(Bucket=bucket, Key=key, Body=b"trial")
        except (Conflict, OutcomeUnknown) as error:
            raise StorageUnavailable(f"S3 does not answer for a trial in {bucket}") from error
        try:
            with _step(path):
                self._delete(Bucket=bucket, Key=key, IfMatch=f'"{"0" * 32}"')
        except Conflict:
            self._remove(path, put)
            return True
        except Unsupported:  # it does not know the condition
            return False
        except OutcomeUnknown as error:
            raise StorageUnavailable(f"S3 does not answer for a trial in {bucket}") from error
        return False

    def _root(self, path: CanonicalPath) -> str:
        bucket, _ = bucket_and_key(path)
        root = self._by_bucket.get(bucket)
        if root is None:
            raise NotAllowed(f"there is no quarantine for the bucket {bucket}", hint="configure one")
        return root

    def _place(self, run_id: str, path: CanonicalPath) -> CanonicalPath:
        """The whole key lies below the run's prefix, so that a person can take an object back by hand."""
        place = f"{self._root(path)}{run_id}/{bucket_and_key(path)[1]}"
        if len(bucket_and_key(CanonicalPath(place))[1].encode()) > _KEY_BYTES_MAX:
            raise Unsupported(f"the key of {path} is too long to have the quarantine's in front of it")
        return CanonicalPath(place)

    def _require_held(self, held: Held) -> None:
        if not any(held.place.startswith(root) for root in self._by_bucket.values()):
            raise NotAllowed(f"{held.place} is in no quarantine", hint="configure the one that it was put into again")


def _is_md5(etag: str, head: Mapping[str, Any]) -> bool:
    """Whether an etag is the MD5 of the object: of one part, and not encrypted with a key of somebody's."""
    encryption = head.get("ServerSideEncryption", "AES256")
    return bool(_MD5.match(etag)) and encryption == "AES256" and "SSECustomerAlgorithm" not in head


@contextmanager
def _step(path: CanonicalPath) -> Iterator[None]:
    """Around one change: what the store refused, what moved meanwhile, and what nobody knows."""
    try:
        yield
    except ClientError as error:
        if http_status(error) in _MOVED:
            raise Conflict(f"{path} does not exist, or another object: {code_of(error)}") from None
        if http_status(error) in _REFUSED:
            raise Unsupported(f"S3 refuses to change {path}: {code_of(error)}") from None
        raise OutcomeUnknown(f"it is unknown whether {path} was changed: {code_of(error)}") from None
    except (BotoCoreError, OSError) as error:
        raise OutcomeUnknown(f"it is unknown whether {path} was changed: {type(error).__name__}") from None
