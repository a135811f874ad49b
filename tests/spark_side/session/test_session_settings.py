"""Spark's settings: what safety depends on is not for anybody to change, and secrets stand on no command line."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from icewright.core.errors import InvalidConfiguration, VersionMismatch
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.work.optimizers import ICEBERG_RUNTIME
from icewright.model.work.spark_conf import launcher_settings, settings_in_session, spark_settings
from icewright_spark.session.session import _check_versions
from tests.builders.specs import catalog, settings_of
from tests.cases import each_case

FIXED = {
    "spark.speculation": "false",
    "spark.submit.deployMode": "client",
    "spark.yarn.maxAppAttempts": "1",
    "spark.task.maxFailures": "1",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.session.timeZone": "UTC",
    "spark.scheduler.mode": "FAIR",
    "spark.executorEnv.MALLOC_ARENA_MAX": "2",
    "spark.master": "local[2]",
    "spark.app.name": "icewright optimizer",
}


def test_o8_w10_what_safety_depends_on_is_set() -> None:
    conf = spark_settings(settings_of(catalogs=(catalog("lake"), catalog("pond"))))
    assert FIXED.items() <= conf.items()
    assert conf["spark.sql.catalog.lake.cache-enabled"] == "false"
    assert conf["spark.sql.catalog.pond"] == "org.apache.iceberg.spark.SparkCatalog"


@each_case("key", [*FIXED, *catalog("lake").spark_properties()])
def test_w10_what_safety_depends_on_cannot_be_changed(key: str) -> None:
    same = FIXED.get(key, "x")
    for value in (same, "something else"):
        with pytest.raises(InvalidConfiguration, match=key.replace(".", r"\.")):
            spark_settings(settings_of(spark_conf={key: value}, catalogs=(catalog("lake"),)))


def test_what_else_a_user_sets_is_taken_also_over_our_defaults() -> None:
    chosen = {"spark.ui.enabled": "true", "spark.sql.catalog.lake.io-impl": "their.FileIO", "spark.driver.memory": "3g"}
    named = ("spark.ui.enabled", "spark.sql.catalog.lake.io-impl")
    conf = spark_settings(settings_of(spark_conf=chosen, spark_conf_keys=named, catalogs=(catalog("lake"),)))
    assert chosen.items() <= conf.items()


@each_case("key", [*FIXED, *catalog("lake").spark_properties()])
def test_w10_t4_no_key_that_is_named_in_the_file_changes_what_safety_depends_on(key: str) -> None:
    changed = settings_of(spark_conf={key: "x"}, spark_conf_keys=(key,), catalogs=(catalog("lake"),))
    with pytest.raises(InvalidConfiguration, match=re.escape(key)):
        spark_settings(changed)


@each_case("master", ["local[2,3]", "local[*,8]", "local[ 1 , 2 ]"])
def test_w10_a_master_that_tries_tasks_again_is_refused(master: str) -> None:
    with pytest.raises(InvalidConfiguration, match="try tasks again"):
        spark_settings(settings_of(master=master))


@each_case("master", ["local", "local[*]", "local[4]", "spark://host:7077,other:7077", "yarn"])
def test_other_masters_are_taken(master: str) -> None:
    conf = spark_settings(settings_of(master=master))
    assert conf["spark.master"] == master
    assert ("spark.driver.bindAddress" in conf) == master.startswith("local")


@each_case("found", ["1.9.2", "1.10.2", "1.11.0", "0.14.1", "unknown", ""])
def test_c2_an_iceberg_that_is_too_old_is_refused(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older ones take a commit for refused that was answered with 503, or send one twice, and clean up after it."""
    session: Any = SimpleNamespace(version="4.1.4")
    monkeypatch.setattr("icewright_spark.session.session.iceberg_version", lambda _spark: found)
    with pytest.raises(VersionMismatch, match=r"needs 1\.12 or newer"):
        _check_versions(session)
    monkeypatch.setattr("icewright_spark.session.session.iceberg_version", lambda _spark: "1.12.0")
    _check_versions(session)


def test_what_spark_writes_down_masks_the_secrets_of_catalogs() -> None:
    masked = re.compile(spark_settings(settings_of())["spark.redaction.regex"])
    keys = ("jdbc.password", "token", "credential", "s3.access-key-id", "s3.secret-access-key", "s3.session-token")
    assert all(masked.search(f"spark.sql.catalog.lake.{key}") for key in keys)
    assert not masked.search("spark.sql.catalog.lake.uri")


def test_packages_are_those_of_iceberg_of_the_catalogs_and_of_the_user() -> None:
    conf = spark_settings(settings_of(packages=("a:b:1",), catalogs=(catalog("lake"), catalog("pond"))))
    assert conf["spark.jars.packages"].split(",") == sorted({ICEBERG_RUNTIME, "a:b:1", *catalog().spark_packages()})
    assert "spark.jars" not in conf


def test_jars_stand_in_for_packages() -> None:
    conf = spark_settings(settings_of(jars=("/jars/a.jar", "/jars/b.jar"), packages=("a:b:1",), catalogs=(catalog(),)))
    assert conf["spark.jars"] == "/jars/a.jar,/jars/b.jar"
    assert "spark.jars.packages" not in conf


def test_the_command_line_of_the_jvm_holds_what_its_launcher_needs_and_no_secret() -> None:
    secrets = {
        "spark.hadoop.fs.s3a.secret.key": "s1",
        "spark.sql.catalog.lake.s3.access-key-id": "s2",
        "spark.sql.catalog.lake.jdbc.password": "s3",
        "spark.authenticate.secret": "s4",
        "spark.driver.extraJavaOptions.password": "s5",
        "spark.anything": "s6",
    }
    uri = "postgresql://me:hunter2@host/lake"
    with_secrets = (
        CatalogEntry("pond", CatalogKind.SQL, uri, "s3://b", {"s3.secret-access-key": "hunter2"}),
        CatalogEntry("sea", CatalogKind.REST, "https://host", "", {"credential": "me:hunter2", "token": "hunter2"}),
    )
    named = tuple(secrets)
    conf = spark_settings(settings_of(spark_conf=secrets, spark_conf_keys=named, catalogs=(catalog(), *with_secrets)))
    shown = launcher_settings(conf)
    assert not set(shown.values()) & set(secrets.values())
    assert "hunter2" in str(conf)
    assert "hunter2" not in str(shown)
    assert not [key for key in shown if key.startswith("spark.sql.catalog")]
    assert {"spark.master", "spark.driver.memory", "spark.jars.packages", "spark.driver.bindAddress"} <= shown.keys()


def test_an_archive_is_unpacked_where_pythons_look_but_not_in_local_mode() -> None:
    packed = settings_of(master="spark://head:7077", archive="/a/packages.zip")
    conf = spark_settings(packed)
    assert conf["spark.archives"] == "/a/packages.zip#icewright-packages"
    assert conf["spark.executorEnv.PYTHONPATH"] == "./icewright-packages"
    assert "spark.archives" not in spark_settings(settings_of(archive="/a/packages.zip"))
    assert "spark.archives" not in settings_in_session(conf, is_submitted=True)
    # On YARN Spark's own packages are on that path by now; without them no worker finds PySpark.
    assert "spark.executorEnv.PYTHONPATH" not in settings_in_session(conf, is_submitted=True)
    assert settings_in_session(conf, is_submitted=False) == conf


@each_case("wrong", ["", "-x", "/a#b", "/a,/b", "/a\n/b"])
@each_case("field", ["archive", "executor_python"])
def test_t4_paths_of_packages_are_one_path(field: str, wrong: str) -> None:
    with pytest.raises(InvalidConfiguration, match=f"optimizer.{field}"):
        spark_settings(settings_of(**{field: wrong}))
