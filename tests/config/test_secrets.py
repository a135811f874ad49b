"""Secrets are references until the moment of use, and are not shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from icewright.config.secrets import is_reference, redact, resolve, resolve_entry
from icewright.core.errors import InvalidConfiguration
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from tests.cases import each_case


def test_an_entry_gets_its_secrets_only_when_asked(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2\n")
    entry = CatalogEntry(
        "lake",
        CatalogKind.SQL,
        "env:URI",
        "file:/warehouse",
        {"s3.secret-access-key": f"file:{secret}", "s3.region": "eu"},
    )
    resolved = resolve_entry(entry, {"URI": "sqlite:////c.db"})
    assert resolved.uri == "sqlite:////c.db"
    assert resolved.properties == {"s3.secret-access-key": "hunter2", "s3.region": "eu"}
    assert resolved.warehouse == "file:/warehouse"
    assert entry.uri == "env:URI"


def test_a_secret_that_is_not_there_is_named_by_its_reference(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match=r"a\.b: the environment has no variable NO"):
        resolve("env:NO", key="a.b", environ={})
    with pytest.raises(InvalidConfiguration, match=r"cannot read the secret in .*gone: No such file"):
        resolve(f"file:{tmp_path}/gone", key="a.b", environ={})
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(InvalidConfiguration, match="not UTF-8"):
        resolve(f"file:{tmp_path}/binary", key="a.b", environ={})


@each_case(
    ("key", "value", "shown"),
    [
        ("s3.secret-access-key", "hunter2", "***"),
        ("s3.access-key-id", "hunter2", "***"),
        ("adls.account-key", "hunter2", "***"),
        ("credential", "hunter2", "***"),
        ("token", "hunter2", "***"),
        ("s3.session-token", "env:TOKEN", "env:TOKEN"),
        ("uri", "postgresql://me:hunter2@host/db", "postgresql://me:***@host/db"),
        ("uri", "postgresql://me:hun@ter2@host/db", "postgresql://me:***@host/db"),
        ("uri", "https://host/?password=hunter2&x=1", "https://host/?password=***&x=1"),
        ("uri", "sqlite:////a/b:c@d.db", "sqlite:////a/b:c@d.db"),
        ("s3.region", "eu-central-1", "eu-central-1"),
    ],
)
def test_what_looks_like_a_secret_is_masked(key: str, value: str, shown: str) -> None:
    assert redact(key, value) == shown


def test_a_file_uri_is_no_reference() -> None:
    assert is_reference("file:/run/secrets/x")
    assert is_reference("env:X")
    assert not is_reference("file:///warehouse")
    assert resolve("file:///warehouse", key="k", environ={}) == "file:///warehouse"
