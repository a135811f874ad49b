"""What both clients are told of each kind of catalog, and what no client is told."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import make_url

from icewright.core.errors import InvalidConfiguration
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.object_stores import AWS_PACKAGE
from icewright.model.iceberg.sql_urls import POSTGRESQL_PACKAGE, SQLITE_PACKAGE
from tests.cases import each_case

SECRET = "hunter2"  # noqa: S105 - nobody's
POSTGRESQL = f"postgresql://me:{SECRET}@db.example:5433/lake?sslmode=require&connect_timeout=3"
S3 = {
    "s3.endpoint": "http://store:9000",
    "s3.access-key-id": "key",
    "s3.secret-access-key": SECRET,
    "s3.session-token": "session",
    "s3.region": "eu-central-1",
    "s3.path-style-access": "true",
}


def sql(uri: str = "sqlite:////lake/c.db", warehouse: str = "/lake/w", **properties: str) -> CatalogEntry:
    return CatalogEntry("lake", CatalogKind.SQL, uri, warehouse, properties)


def rest(warehouse: str = "", **properties: str) -> CatalogEntry:
    return CatalogEntry("lake", CatalogKind.REST, "https://catalog.example/api", warehouse, properties)


def hive(uri: str = "thrift://one:9083,thrift://two:9083", warehouse: str = "", **properties: str) -> CatalogEntry:
    return CatalogEntry("lake", CatalogKind.HIVE, uri, warehouse, properties)


def spark(entry: CatalogEntry) -> dict[str, str]:
    """Spark's settings without the prefix."""
    prefix = "spark.sql.catalog.lake"
    found = entry.spark_properties()
    assert found.pop(prefix) == "org.apache.iceberg.spark.SparkCatalog"
    assert found.pop(f"{prefix}.cache-enabled") == "false"
    return {key.removeprefix(f"{prefix}."): text for key, text in found.items()}


def test_sql_on_sqlite() -> None:
    entry = sql()
    told = entry.pyiceberg_properties()
    assert (told["type"], told["uri"], told["warehouse"]) == ("sql", "sqlite:////lake/c.db", "file:///lake/w")
    assert spark(entry) == {
        "type": "jdbc",
        "uri": "jdbc:sqlite:/lake/c.db?busy_timeout=30000",
        "jdbc.schema-version": "V1",
        "warehouse": "file:///lake/w",
    }
    assert entry.spark_packages() == (SQLITE_PACKAGE,)


@each_case("scheme", ["postgresql", "postgresql+psycopg2", "postgresql+psycopg", "postgres"])
def test_sql_on_postgresql(scheme: str) -> None:
    entry = sql(POSTGRESQL.replace("postgresql", scheme), "s3://bucket/w", **S3)
    told = entry.pyiceberg_properties()
    assert told["uri"] == POSTGRESQL.replace("postgresql", "postgresql+psycopg").replace(
        "?sslmode=require&connect_timeout=3", "?connect_timeout=3&sslmode=require"
    )
    java = spark(entry)
    assert (java["type"], java["jdbc.schema-version"], java["warehouse"]) == ("jdbc", "V1", "s3://bucket/w")
    assert java["uri"] == ("jdbc:postgresql://db.example:5433/lake?tcpKeepAlive=true&connectTimeout=3&sslmode=require")
    assert (java["jdbc.user"], java["jdbc.password"]) == ("me", SECRET)
    assert entry.spark_packages() == (POSTGRESQL_PACKAGE, AWS_PACKAGE)


def test_a_password_of_postgresql_may_stand_beside_the_uri() -> None:
    entry = sql("postgresql://host/lake", **{"jdbc.user": "me", "jdbc.password": SECRET})
    assert make_url(entry.pyiceberg_properties()["uri"]).password == SECRET
    assert "jdbc.password" not in entry.pyiceberg_properties()
    assert (spark(entry)["jdbc.user"], spark(entry)["jdbc.password"]) == ("me", SECRET)


def test_without_a_password_the_clients_find_their_own() -> None:
    entry = sql("postgresql://me@[::1]/lake")
    assert entry.pyiceberg_properties()["uri"] == "postgresql+psycopg://me@[::1]/lake?connect_timeout=10"
    assert spark(entry)["uri"] == "jdbc:postgresql://[::1]/lake?tcpKeepAlive=true&connectTimeout=10"
    assert "jdbc.password" not in spark(entry)


@given(user=st.text(min_size=1), password=st.text(min_size=1), database=st.text(min_size=1))
def test_any_login_reaches_both_clients_as_it_is(user: str, password: str, database: str) -> None:
    login = {"jdbc.user": user, "jdbc.password": password}
    entry = sql(f"postgresql://host/{quote(database, safe='')}", **login)
    url = make_url(entry.pyiceberg_properties()["uri"])
    assert (url.username, url.password) == (user, password)
    java = spark(entry)
    assert (java["jdbc.user"], java["jdbc.password"]) == (user, password)
    assert unquote(java["uri"].removeprefix("jdbc:postgresql://host/").partition("?")[0]) == database


def test_rest() -> None:
    auth = {
        "credential": f"me:{SECRET}",
        "oauth2-server-uri": "https://login.example/token",
        "scope": "PRINCIPAL_ROLE:ALL",
        "header.X-Tenant": "t",
    }
    entry = rest("prod", **auth)
    told = entry.pyiceberg_properties()
    expected = {"type": "rest", "uri": "https://catalog.example/api", "warehouse": "prod", **auth}
    assert expected.items() <= told.items()
    assert told["snapshot-loading-mode"] == "all"
    java = spark(entry)
    assert expected.items() <= java.items()
    assert java["snapshot-loading-mode"] == "all"
    assert java["header.X-Iceberg-Access-Delegation"] == "vended-credentials"
    assert {key for key in java if "timeout" in key} == {
        "rest.client.connection-timeout-ms",
        "rest.client.socket-timeout-ms",
    }
    assert "io-impl" not in java
    assert entry.spark_packages() == ()


def test_a_rest_catalog_by_token_without_a_warehouse() -> None:
    entry = rest(token=SECRET)
    assert entry.pyiceberg_properties()["token"] == spark(entry)["token"] == SECRET
    assert "warehouse" not in {*entry.pyiceberg_properties(), *spark(entry)}


def test_hive() -> None:
    entry = hive(warehouse="hdfs://nn:8020/w")
    told = entry.pyiceberg_properties()
    assert (told["type"], told["uri"], told["warehouse"]) == ("hive", entry.uri, "hdfs://nn:8020/w")
    assert spark(entry) == {
        "type": "hive",
        "uri": entry.uri,
        "warehouse": "hdfs://nn:8020/w",
        "hadoop.hive.metastore.client.socket.timeout": "60s",
    }
    assert entry.spark_packages() == ()
    assert "warehouse" not in spark(hive())


@each_case("entry", [sql(), sql(POSTGRESQL), rest(), hive()])
def test_l2_no_lock_is_ever_switched(entry: CatalogEntry) -> None:
    assert not [key for key in {**entry.spark_properties(), **entry.pyiceberg_properties()} if "lock" in key]


def test_storage_on_s3_by_each_clients_names() -> None:
    entry = hive(warehouse="s3://bucket/w", **S3)
    told, java = entry.pyiceberg_properties(), spark(entry)
    for key in ("s3.endpoint", "s3.access-key-id", "s3.secret-access-key", "s3.session-token"):
        assert told[key] == java[key] == S3[key]
    assert (told["s3.region"], java["client.region"]) == ("eu-central-1", "eu-central-1")
    assert (told["s3.force-virtual-addressing"], java["s3.path-style-access"]) == ("false", "true")
    assert java["io-impl"] == "org.apache.iceberg.aws.s3.S3FileIO"
    assert {"s3.connect-timeout", "s3.request-timeout"} <= told.keys()
    assert AWS_PACKAGE in entry.spark_packages()


def test_storage_on_s3_by_the_other_clients_names() -> None:
    entry = hive(
        warehouse="s3a://bucket/w",
        **{
            "client.region": "eu-west-1",
            "client.access-key-id": "key",
            "client.secret-access-key": SECRET,
            "s3.force-virtual-addressing": "True",
        },
    )
    told, java = entry.pyiceberg_properties(), spark(entry)
    assert (told["s3.region"], java["client.region"]) == ("eu-west-1", "eu-west-1")
    assert (told["s3.access-key-id"], java["s3.access-key-id"]) == ("key", "key")
    assert (told["s3.secret-access-key"], java["s3.secret-access-key"]) == (SECRET, SECRET)
    assert (told["s3.force-virtual-addressing"], java["s3.path-style-access"]) == ("true", "false")
    assert not {"client.access-key-id", "client.secret-access-key", "s3.force-virtual-addressing"} & java.keys()
    assert "s3.region" not in spark(hive(**S3))


def test_without_keys_nothing_stands_in_the_way_of_those_of_the_machine() -> None:
    entry = hive(warehouse="s3://bucket/w")
    for told in (entry.pyiceberg_properties(), spark(entry)):
        assert not [key for key in told if "key" in key or "token" in key or "region" in key]


def test_an_endpoint_without_a_region_is_not_looked_up_at_amazon() -> None:
    entry = hive(warehouse="s3://bucket/w", **{"s3.endpoint": "http://store:9000"})
    assert entry.pyiceberg_properties()["s3.region"] == spark(entry)["client.region"] == "us-east-1"


def test_where_only_some_tables_are_on_s3_java_goes_by_the_location() -> None:
    entry = hive(warehouse="hdfs://nn/w", **S3)
    assert spark(entry)["io-impl"] == "org.apache.iceberg.io.ResolvingFileIO"
    assert spark(hive(warehouse="s3://b", **{"io-impl": "my.FileIO"}))["io-impl"] == "my.FileIO"
    assert AWS_PACKAGE in entry.spark_packages()
    assert "io-impl" not in spark(hive(warehouse="hdfs://nn/w"))


def test_code_is_named_to_the_client_that_can_load_it() -> None:
    entry = hive(warehouse="s3://b", **{"io-impl": "my.FileIO", "py-io-impl": "my.module.FileIO"})
    assert "io-impl" not in entry.pyiceberg_properties()
    assert entry.pyiceberg_properties()["py-io-impl"] == "my.module.FileIO"
    assert "py-io-impl" not in spark(entry)


@each_case(
    ("entry", "problem"),
    [
        (sql("sqlite:///relative.db"), "is not a SQLite file"),
        (sql(f"mysql://me:{SECRET}@h/d"), "SQL catalogs on mysql cannot be used"),
        (sql(f"me:{SECRET}@h"), "cannot be used"),
        (sql(f"postgresql://me:{SECRET}@/d"), "lacks the host or the database"),
        (sql(f"postgresql://me:{SECRET}@h"), "lacks the host or the database"),
        (sql(f"postgresql://me:{SECRET}@h:{SECRET}/d"), "is no URL"),
        (sql(f"postgresql://me:{SECRET}@h/d?passfile=/x"), "'passfile', which cannot be said"),
        (sql("postgresql://h/d", **{"jdbc.password": SECRET}), "a password and no user"),
        (sql(warehouse=""), "has no warehouse"),
        (sql(warehouse="relative"), "neither a URI nor an absolute path"),
        (CatalogEntry("lake", CatalogKind.REST, "ftp://h", ""), "does not begin with http://host"),
        (CatalogEntry("lake", CatalogKind.REST, f"https://me:{SECRET}@h", ""), "holds a user or a password"),
        (CatalogEntry("lake", CatalogKind.REST, "https://[h", ""), "is no URL"),
        (hive("one:9083"), "does not begin with thrift://host"),
        (hive("thrift://one:9083,http://two"), "does not begin with thrift://host"),
        (hive("thrift://one:port"), "is no URL"),
        (rest(**{"rest.sigv4-enabled": "true"}), "SigV4"),
        (hive(**{"hive.kerberos-authentication": "TRUE"}), "Kerberos"),
        (rest(**{"catalog-impl": "my.Catalog"}), "catalog-impl is no property"),
        (rest(uri="https://other"), "uri is no property"),
        (hive(**{"s3.path-style-access": "yes"}), "must be true or false"),
        (hive(**{"s3.path-style-access": "true", "s3.force-virtual-addressing": "true"}), "contradict each other"),
    ],
)
def test_what_cannot_be_used_is_said_without_its_secrets(entry: CatalogEntry, problem: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        entry.check()
    assert caught.value.message.startswith("catalog lake: ")
    assert problem in caught.value.message
    assert SECRET not in caught.value.message + caught.value.hint


@each_case("entry", [sql(), sql(POSTGRESQL, "s3://b", **S3), rest(token=SECRET), hive(**S3)])
def test_what_can_be_used_is_let_through(entry: CatalogEntry) -> None:
    entry.check()


def places(*quarantine: str, roots: tuple[str, ...] = (), aliases: Mapping[str, str] | None = None) -> CatalogEntry:
    named = dict(aliases or {})
    return CatalogEntry(
        "lake", CatalogKind.SQL, "sqlite:////lake/c.db", "/lake/w", {}, named, roots=roots, quarantine=quarantine
    )


@each_case(
    ("quarantine", "said"),
    [
        (["held"], "neither a URI nor an absolute path"),
        (["../held"], "neither a URI nor an absolute path"),
        ([""], "neither a URI nor an absolute path"),
        (["s3:bucket/held"], "neither a URI nor an absolute path"),
        (["/srv/../etc/held"], "may be another folder"),
        (["/srv/./held"], "may be another folder"),
        (["file:///srv//held"], "may be another folder"),
        (["hdfs://cluster/w/../held"], "may be another folder"),
        (["s3a://bucket/w/../held"], "may be another folder"),
        (["s3://bucket/held//"], "no root"),
        (["s3://bucket"], "a whole storage"),
        (["s3a://bucket/"], "a whole storage"),
        (["hdfs://cluster/"], "a whole storage"),
        (["/"], "a whole storage"),
        (["gs://bucket/held"], "is on gs"),
        (["abfss://c@account.example/held"], "is on abfss"),
        (["http://host/held"], "is on http"),
        (["/srv/held", "/srv/held/more"], "overlap"),
        (["s3://bucket/held", "s3a://bucket/held/"], "overlap"),
        (["hdfs://node-1/held", "hdfs://cluster/held/more"], "overlap"),
    ],
)
def test_a_quarantine_is_a_folder_of_its_own_on_a_storage_where_files_can_be_moved(
    quarantine: list[str], said: str
) -> None:
    entry = places(*quarantine, aliases={"hdfs://node-1": "hdfs://cluster"})
    with pytest.raises(InvalidConfiguration, match=f"^catalog lake: .*{said}"):
        entry.check_places()


def test_beside_each_other_and_on_several_storages_quarantines_are_fine() -> None:
    places("/srv/held", "/srv/held_2", "s3://bucket/held", "s3://bucket_2/held", "hdfs://cluster/held").check_places()


@each_case("place", [f"s3://key:{SECRET}@bucket/held", f"s3://key:{SECRET}@bucket", f"hdfs://:{SECRET}@c/x"])
def test_no_place_that_is_shown_holds_a_password(place: str) -> None:
    for entry in (places(place), places(roots=(place,))):
        with pytest.raises(InvalidConfiguration, match="holds a user or a password") as refused:
            entry.check_places()
        assert SECRET not in refused.value.message
    places(roots=("abfss://container@account.example/w",)).check_places()
