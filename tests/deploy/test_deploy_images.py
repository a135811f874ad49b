"""The images: nothing secret, nothing unpinned, nobody privileged. No container is built here; its words are read."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.cases import each_case

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "deploy/Containerfile"
TARGETS = ("server", "optimizer", "demo")
PINNED = re.compile(r"[a-z0-9.-]+\.[a-z]+/[a-z0-9/_-]+:\d+\.\d+(\.\d+)?[a-z0-9.-]*\Z")


@dataclass
class Stage:
    """A stage of a build: what it is made from, and its instructions in their order."""

    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def words(self, instruction: str) -> list[str]:
        return [words for name, words in self.instructions if name == instruction]


def read(text: str) -> dict[str, Stage]:
    """Stages by name, with build arguments in place."""
    stages: dict[str, Stage] = {}
    current: Stage | None = None
    arguments: dict[str, str] = {}
    plain = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in plain.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        name, _, words = line.strip().partition(" ")
        for argument, value in arguments.items():
            words = words.replace(f"${{{argument}}}", value)
        if name == "ARG" and current is None:
            argument, _, value = words.partition("=")
            arguments[argument] = value
        elif name == "FROM":
            base, _, stage = words.partition(" AS ")
            current = stages[stage] = Stage(base)
        else:
            assert current is not None
            current.instructions.append((name, words.strip()))
    return stages


STAGES = read(CONTAINERFILE.read_text(encoding="utf-8"))


def chain(name: str) -> list[Stage]:
    """A stage and those that it is made from, the first one first."""
    stage = STAGES[name]
    return [*(chain(stage.base) if stage.base in STAGES else []), stage]


def test_the_targets_are_there() -> None:
    assert set(TARGETS) <= set(STAGES)


@each_case("name", STAGES)
def test_every_image_it_is_made_from_has_a_version(name: str) -> None:
    base = STAGES[name].base
    assert base in STAGES or PINNED.match(base), base
    assert "latest" not in base


@each_case("base", ["python", "python:latest", "docker.io/library/python", "docker.io/library/python:slim"])
def test_that_check_would_notice(base: str) -> None:
    assert not PINNED.match(base)


@each_case("name", STAGES)
def test_nothing_is_fetched_without_a_hash_and_nothing_unasked_is_copied(name: str) -> None:
    stage = STAGES[name]
    assert not stage.words("ADD")
    for words in stage.words("COPY"):
        sources = [word for word in words.split()[:-1] if not word.startswith("--")]
        assert "." not in sources
        if "--from=" not in words:
            assert all((ROOT / source).exists() for source in sources), words
    for words in stage.words("RUN"):
        assert not re.search(r"curl|wget|https?://|git clone", words), words
        for command in re.findall(r"pip (?:wheel|install)[^&]*", words):
            assert {"--require-hashes", "--no-index", "--no-deps"} & set(command.split()), command


@each_case("name", STAGES)
def test_t5_no_secret_is_in_a_layer(name: str) -> None:
    stage = STAGES[name]
    for words in (*stage.words("ENV"), *stage.words("ARG"), *stage.words("LABEL")):
        assert not re.search(r"token|password|secret|credential|key", words, re.IGNORECASE), words
    assert not [words for words in stage.words("COPY") if re.search(r"secrets|\.pem|\.key|\.env", words)]


@pytest.mark.parametrize("name", TARGETS)
def test_whoever_runs_it_is_nobody_in_particular(name: str) -> None:
    instructions = [each for stage in chain(name) for each in stage.instructions]
    users = [words for instruction, words in instructions if instruction == "USER"]
    assert users == ["10001:10001"]
    after = instructions[instructions.index(("USER", users[0])) :]
    assert not [words for instruction, words in after if instruction in {"RUN", "COPY"}]
    made = " ".join(words for instruction, words in instructions if instruction == "RUN")
    assert "--uid 10001" in made
    assert "sudo" not in made
    assert not [words for stage in chain(name) for words in stage.words("VOLUME")]


@pytest.mark.parametrize(("name", "default"), [("server", "serve"), ("optimizer", "optimizer"), ("demo", "demo")])
def test_it_starts_by_a_list_of_words_and_ends_by_a_signal(name: str, default: str) -> None:
    (entry,), (command,) = STAGES[name].words("ENTRYPOINT"), STAGES[name].words("CMD")
    assert json.loads(entry) == ["/usr/bin/tini", "--", "icewright"]
    assert json.loads(command)[0] == default
    assert "tini" in " ".join(words for stage in chain(name) for words in stage.words("RUN"))


def test_its_health_is_asked_for_where_it_listens() -> None:
    (asked,) = STAGES["server"].words("HEALTHCHECK")
    assert json.loads(asked.partition(" CMD ")[2]) == ["python", "/opt/icewright/healthcheck.py"]
    assert "deploy/healthcheck.py /opt/icewright/healthcheck.py" in STAGES["server"].words("COPY")
    assert [STAGES[name].words("HEALTHCHECK") for name in ("optimizer", "demo")] == [["NONE"], ["NONE"]]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def installed(name: str) -> str:
    return " ".join(words for stage in chain(name) for words in stage.words("RUN"))


def extras(name: str) -> set[str]:
    """What an image has beside the server and the command line."""
    found = re.search(r"'icewright\[([a-z0-9,]+)\]'", installed(f"{name}-packages"))
    assert found is not None
    return set(found[1].split(","))


def packages(name: str) -> set[str]:
    """All packages that an image gets: those that icewright requires there, and theirs, as installed here."""
    optional = PROJECT["project"]["optional-dependencies"]
    named = [*PROJECT["project"]["dependencies"], *(each for extra in extras(name) for each in optional[extra])]
    left = [Requirement(each) for each in named]
    seen: set[tuple[str, str]] = set()
    while left:
        one = left.pop()
        for extra in ("", *one.extras):
            key = (canonicalize_name(one.name), extra)
            if key not in seen:
                seen.add(key)
                required = map(Requirement, distribution(one.name).requires or ())
                left += [each for each in required if each.marker is None or each.marker.evaluate({"extra": extra})]
    return {name for name, _ in seen}


def test_java_is_in_the_optimizer_alone_and_spark_as_well() -> None:
    assert set().union(*map(extras, TARGETS)) <= set(PROJECT["project"]["optional-dependencies"])
    assert "postgresql" in extras("server")
    assert "demo" not in extras("server") | extras("optimizer")
    assert extras("demo") == {"demo", "spark"}
    assert {name for name in TARGETS if "openjdk-17" in installed(name)} == {"optimizer", "demo"}
    assert {name for name in TARGETS if {"pyspark", "py4j", "pandas"} <= packages(name)} == {"optimizer", "demo"}
    assert not {"pyspark", "py4j", "pandas", "arro3-core"} & packages("server")


@each_case("name", TARGETS)
def test_no_image_has_the_tools_of_tests_and_docs(name: str) -> None:
    tools = {*PROJECT["dependency-groups"]["dev"], *PROJECT["dependency-groups"]["docs"]}
    found = {canonicalize_name(Requirement(each).name) for each in tools} - {"numpy", "pandas"}  # Spark needs these
    assert len(found) > 15
    assert found & packages(name) == set()
    assert "pyarrow" in packages(name)


def test_applications_find_their_beginning_where_spark_looks_for_it() -> None:
    assert "deploy/application.py /opt/icewright/application.py" in STAGES["optimizer"].words("COPY")
    told = (ROOT / "docs/optimizers.md").read_text(encoding="utf-8")
    body = (ROOT / "deploy/application.py").read_text(encoding="utf-8").partition('"""\n\n')[2]
    assert body in told
