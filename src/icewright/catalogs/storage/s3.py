"""S3 as its own client has it: etags, versions, and the store's clock, which neither Arrow nor PyIceberg tell.

Credentials are those of the catalog's entry, or what the machine has. No message here repeats what a store or a library
said beyond its error code: it may hold a part of a key. Nor is it kept as a cause, which a log would print: errors are
raised ``from None`` here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from icewright.core.errors import InvalidConfiguration, InvalidLocation, StorageUnavailable, Unreadable, Unsupported
from icewright.core.times import Instant
from icewright.model.iceberg import object_stores
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import Listed, ListedObject, prefix_of

STORAGE: Final = "s3://"
_READS: Final = 3
"""How often a question is asked."""
_NOT_THERE: Final = 404
_ANSWERED_MIN, _TROUBLE_MIN = 400, 500
_ROLES: Final = ("s3.role-arn", "client.role-arn")


@cache
def _models() -> Any:
    """What S3 is, as the library's files say; read once, which takes longer than a question."""
    from botocore.loaders import create_loader  # noqa: PLC0415 - see S3Client

    return create_loader()


class S3Client:
    """What speaks to one store: ``reads`` asks several times, ``writes`` says everything once.

    A write whose answer was lost may have happened, so nothing here may repeat it. The library is loaded with the first
    question: it takes half a second of CPU, and most catalogs have no table on S3.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = {**properties, **object_stores.for_pyiceberg(properties)}
        self._lock = threading.Lock()
        self._made: dict[int, Any] = {}

    @property
    def reads(self) -> Any:
        """For questions."""
        return self._client(_READS)

    @property
    def writes(self) -> Any:
        """For what changes something."""
        return self._client(1)

    def _client(self, attempts: int) -> Any:
        with self._lock:
            if attempts not in self._made:
                self._made[attempts] = self._make(attempts)
            return self._made[attempts]

    def _make(self, attempts: int) -> Any:
        if role := next((key for key in _ROLES if key in self._properties), None):
            raise Unsupported(f"{role}: a role cannot be taken here yet", hint="run the server under that role")
        try:
            return self._opened(attempts)
        except ValueError:
            raise InvalidConfiguration(
                "S3 cannot be spoken to with the settings of this catalog",
                hint="look at its s3.endpoint, s3.region, s3.proxy-uri and timeouts",
            ) from None

    def _opened(self, attempts: int) -> Any:
        import boto3  # noqa: PLC0415 - see the class
        import botocore.session  # noqa: PLC0415 - the same
        from botocore.config import Config  # noqa: PLC0415 - the same

        found = self._properties
        style = {"false": "path", "true": "virtual"}.get(found.get("s3.force-virtual-addressing", ""), "auto")
        proxy = found.get("s3.proxy-uri")
        config = Config(
            connect_timeout=float(found["s3.connect-timeout"]),
            read_timeout=float(found["s3.request-timeout"]),
            retries={"total_max_attempts": attempts, "mode": "standard"},
            s3={"addressing_style": style},
            proxies={"http": proxy, "https": proxy} if proxy else None,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        core = botocore.session.Session()
        core.register_component("data_loader", _models())
        session = boto3.session.Session(
            botocore_session=core,
            aws_access_key_id=found.get("s3.access-key-id"),
            aws_secret_access_key=found.get("s3.secret-access-key"),
            aws_session_token=found.get("s3.session-token"),
            region_name=found.get("s3.region"),
            profile_name=found.get("s3.profile-name") or found.get("client.profile-name"),
        )
        return session.client("s3", endpoint_url=found.get("s3.endpoint"), config=config)


class S3Objects:
    """See the port."""

    def __init__(self, client: S3Client) -> None:
        self._client = client

    def now(self, path: CanonicalPath) -> Instant:
        """The ``Date`` of the store's answer, whatever it answers."""
        bucket, _ = bucket_and_key(path)
        with asking(path):
            try:
                answer = self._client.reads.head_bucket(Bucket=bucket)
            except ClientError as error:
                if not _is_refusal(error):
                    raise
                answer = error.response
        said = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        try:
            return int(parsedate_to_datetime(said).timestamp() * 1000)
        except (TypeError, ValueError):
            raise Unsupported(f"the store of {bucket} does not say what time it is") from None

    def list(self, root: CanonicalPath) -> Iterator[Listed]:
        """Everything below a root; each key is looked at again, whatever the store understood."""
        return self._list(root)

    def list_folder(self, folder: CanonicalPath) -> Iterator[Listed]:
        """What is in a folder itself, which the store tells apart; each key is looked at again as well."""
        prefix = prefix_of(folder)
        return (one for one in self._list(folder, Delimiter="/") if "/" not in one.path[len(prefix) :])

    def _list(self, root: CanonicalPath, **asked: str) -> Iterator[Listed]:
        bucket, prefix = bucket_and_key(CanonicalPath(prefix_of(root)))
        with asking(root):
            pages = self._client.reads.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, **asked)
            for page in pages:
                for found in page.get("Contents", ()):
                    if not found["Key"].startswith(prefix):
                        raise Unreadable(f"the store lists what is not below {root}")
                    yield listed(CanonicalPath(f"{STORAGE}{bucket}/{found['Key']}"), found["Size"], found)

    def stat(self, path: CanonicalPath) -> ListedObject | None:
        """What is at a path now."""
        head = head_of(self._client, path)
        return None if head is None else listed(path, head["ContentLength"], head)

    def read(self, path: CanonicalPath, bytes_max: int) -> bytes:
        """All bytes of an object."""
        bucket, key = bucket_and_key(path)
        with asking(path):
            answer = self._client.reads.get_object(Bucket=bucket, Key=key)
            with closing(answer["Body"]) as body:  # as a context itself it gives the stream that is not translated
                if answer["ContentLength"] > bytes_max:
                    raise Unreadable(f"{path} is longer than {bytes_max} bytes, the most that is read of it")
                content: bytes = body.read()
        return content


def bucket_and_key(path: CanonicalPath) -> tuple[str, str]:
    """Raises :class:`Unsupported` for another storage, :class:`InvalidLocation` without a bucket."""
    if not path.startswith(STORAGE):
        raise Unsupported(f"{path[:200]!r} is not on S3")
    bucket, _, key = path[len(STORAGE) :].partition("/")
    if not bucket:
        raise InvalidLocation(f"{path[:200]!r} has no bucket")
    return bucket, key


def head_of(client: S3Client, path: CanonicalPath, **asked: str) -> Mapping[str, Any] | None:
    """What the store says of an object; None when there is none, or a delete marker in its place."""
    bucket, key = bucket_and_key(path)
    if not key:
        return None
    with asking(path):
        try:
            found: Mapping[str, Any] = client.reads.head_object(Bucket=bucket, Key=key, **asked)
        except ClientError as error:
            if http_status(error) != _NOT_THERE:
                raise
            return None
    return found


def listed(path: CanonicalPath, size_bytes: int, found: Mapping[str, Any]) -> ListedObject:
    """An object. Its time has whole seconds: some stores tell more in a listing than of the object itself."""
    modified_at: datetime | None = found.get("LastModified")
    return ListedObject(
        path,
        size_bytes,
        None if modified_at is None else int(modified_at.timestamp()) * 1000,
        found["ETag"].strip('"') if found.get("ETag") else None,
        found.get("VersionId"),
    )


def http_status(error: ClientError) -> int:
    """The status of an answer, 0 when there was none."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def code_of(error: ClientError) -> str:
    """The store's word for what is wrong."""
    return str(error.response.get("Error", {}).get("Code", "")) or str(http_status(error))


@contextmanager
def asking(path: CanonicalPath) -> Iterator[None]:
    """Around a question. What the store refuses is :class:`Unreadable`, all else :class:`StorageUnavailable`."""
    try:
        yield
    except ClientError as error:
        if _is_refusal(error):
            raise Unreadable(f"S3 denies access to {path}: {code_of(error)}") from None
        raise StorageUnavailable(f"S3 does not answer for {path}: {code_of(error)}") from None
    except (BotoCoreError, OSError) as error:
        raise StorageUnavailable(f"S3 does not answer for {path}: {type(error).__name__}") from None


def _is_refusal(error: ClientError) -> bool:
    return _ANSWERED_MIN <= http_status(error) < _TROUBLE_MIN and code_of(error) != "SlowDown"
