"""Of all that Spark can be told, only what is on the list gets through, and only as what it may be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.errors import InvalidConfiguration
from icewright.model.work.spark_conf import ALLOWED, checked
from tests.cases import ROOT, each_case

KEYS = (Path(__file__).parent / "spark_4_1_keys.txt").read_text().split()
"""Every text in the classes of Spark 4.1.4 that has the form of one of its keys."""
GOOD = ("1", "true", "2g", "30s", "0.5", "zstd", "name", "a.host", "img/of:1", "Always")
HOSTILE = (
    "",
    "-1",
    "--conf",
    "--conf spark.jars=/x",
    "1\nspark.jars=/x",
    "1\rspark.jars=/x",
    "1\x00",
    "1 ",
    " 1",
    "1\u2028spark.jars=/x",
    "1\x85",
    "$(id)",
    "`id`",
    "1;id",
    "'1'",
    '"1"',
    "${env:HOME}",
    "1 -XX:OnError=id",
    "1\\",
    "x" * 5000,
    "\ud800",
    "\N{FULLWIDTH DIGIT ONE}",
)
REFUSED = (
    "spark.driver.extraJavaOptions",
    "spark.executor.extraJavaOptions",
    "spark.driver.defaultJavaOptions",
    "spark.driver.extraClassPath",
    "spark.driver.userClassPathFirst",
    "spark.jars",
    "spark.jars.packages",
    "spark.jars.repositories",
    "spark.submit.pyFiles",
    "spark.plugins",
    "spark.sql.extensions",
    "spark.extraListeners",
    "spark.archives",
    "spark.files",
    "spark.local.dir",
    "spark.pyspark.python",
    "spark.kubernetes.driver.podTemplateFile",
    "spark.yarn.dist.files",
    "spark.hadoop.fs.s3a.impl",
    "spark.sql.catalog.lake.io-impl",
    "spark.executorEnv.LD_PRELOAD",
    "spark.testing",
)


def passes(key: str, value: str) -> bool:
    try:
        checked({key: value})
    except InvalidConfiguration:
        return False
    return True


def test_t4_of_all_keys_of_spark_only_those_on_the_list_pass() -> None:
    assert len(KEYS) > 1_600
    assert {key for key in KEYS if any(passes(key, value) for value in GOOD)} == ALLOWED.keys() & set(KEYS)
    assert not [key for key in REFUSED if any(passes(key, value) for value in GOOD)]


def test_every_key_on_the_list_is_one_of_spark_and_may_have_some_value() -> None:
    composed = {f"spark.kubernetes.authenticate.{who}.serviceAccountName" for who in ("driver", "executor")}
    assert ALLOWED.keys() - set(KEYS) == composed
    assert all(any(passes(key, value) for value in GOOD) for key in ALLOWED)


@each_case("key", ["spark.jars", "spark.driver.extraJavaOptions", "spark.executor.cores"])
def test_t4_another_spelling_is_another_key(key: str) -> None:
    spelled = (
        key.upper(),
        f" {key}",
        f"{key} ",
        f"{key}\n",
        key.replace(".", "\u2024", 1),
        f"{key}\x00",
        f"--conf {key}",
    )
    assert not [other for other in spelled if passes(other, "1")]
    for other in spelled[1:]:
        with pytest.raises(InvalidConfiguration):
            checked({}, [other])


@each_case("value", HOSTILE)
def test_t4_no_value_is_more_than_one_plain_word(value: str) -> None:
    assert not [key for key in ALLOWED if passes(key, value)]


@given(key=st.sampled_from(sorted(ALLOWED)), value=st.text(max_size=40))
def test_t4_whatever_passes_is_of_letters_that_mean_nothing_to_anybody(key: str, value: str) -> None:
    if passes(key, value):
        assert re.fullmatch(r"[A-Za-z0-9._:/@\[][A-Za-z0-9._:/@\[\]-]*", value)


def test_t4_a_key_that_the_administrator_names_is_still_one_line_that_is_no_option() -> None:
    named = ["spark.driver.extraJavaOptions"]
    assert checked({named[0]: "a b=c"}, named) == {named[0]: "a b=c"}
    for value in ("", "-Dx=y", "a\nb", "a\x00b", "a\u2029b", "x" * 5000):
        with pytest.raises(InvalidConfiguration):
            checked({named[0]: value}, named)
    with pytest.raises(InvalidConfiguration):
        checked({"spark.executor.cores": "-1"}, ["spark.executor.cores"])


def test_t5_a_refusal_does_not_repeat_the_value() -> None:
    for key in ("spark.executor.cores", "spark.ssl.keyPassword"):
        with pytest.raises(InvalidConfiguration) as refused:
            checked({key: "hunter2 "})
        assert "hunter2" not in refused.value.message + refused.value.hint


def test_the_page_has_all_keys_that_may_be_set() -> None:
    page = (ROOT / "docs" / "optimizers.md").read_text()
    said = page.partition("takes only these keys")[2].partition("can set any key")[0]
    assert set(re.findall(r"`(spark\.[^`]+)`", said)) == set(ALLOWED)
