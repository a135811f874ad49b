"""Dashboard, rules and alerts ask for metrics that there are, by labels that they have.

No server of Prometheus reads them here. What is checked of PromQL: that it is made of what it can be made of (names,
numbers, texts, brackets that match, functions and aggregations that there are), and that each name and label is known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from icewright.core.servers import CoordinatorLink, LinkState
from icewright.model.iceberg.names import TableName
from icewright.model.work.retention import RowKind
from icewright.retention.history import HistoryProgress
from tests.builders.mailbox import Mailbox, told
from tests.builders.served import V1, Served, hello
from tests.cases import each_case
from tests.docs.test_documentation import anchors
from tests.doubles.clock import ManualClock

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = yaml.safe_load((DEPLOY / "prometheus/rules.yaml").read_text(encoding="utf-8"))
ALERTS = yaml.safe_load((DEPLOY / "prometheus/alerts.yaml").read_text(encoding="utf-8"))
DASHBOARD = json.loads((DEPLOY / "grafana/icewright.json").read_text(encoding="utf-8"))
DOCS = Path(__file__).parents[2] / "docs"

FUNCTIONS = {"rate": 1, "increase": 1, "histogram_quantile": 2, "vector": 1}
AGGREGATIONS = frozenset({"sum", "max", "min"})
WORDS = frozenset({"by", "and", "or"})
OF_SCRAPES = frozenset({"instance", "job"})
"""Labels that Prometheus gives to all that it asks for."""

TOKEN = re.compile(
    r"\s*(?:(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)|(?P<number>[0-9.]+(?:e[0-9]+)?)|(?P<text>\"[^\"]*\")"
    r"|(?P<range>\[(?:[0-9]+[smhd]|\$__rate_interval)\])|(?P<sign>=~|!=|!~|==|>=|<=|[(){},=<>+*/-]))"
)


def tokens(expression: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while at < len(expression.rstrip()):
        token = TOKEN.match(expression, at)
        assert token is not None, f"no PromQL from here on: {expression[at:]}"
        kind = token.lastgroup or ""
        found.append((kind, token[kind]))
        at = token.end()
    return found


def check(expression: str, known: dict[str, dict[str, set[str]]]) -> None:
    """Whether an expression can be one, and everything that it names is there."""
    read = [*tokens(expression), ("end", "")]
    open_brackets: list[str] = []
    scopes: list[set[str]] = []
    said: set[str] = set()
    at = 0
    while read[at][0] != "end":
        kind, word = read[at]
        following = read[at + 1][1]
        if word in ("(", "{"):
            open_brackets.append({"(": ")", "{": "}"}[word])
        elif word in (")", "}"):
            assert open_brackets, expression
            assert open_brackets.pop() == word, expression
        elif kind == "name" and word == "by":
            close = next(i for i in range(at, len(read)) if read[i][1] == ")")
            scopes.append({name for what, name in read[at + 1 : close] if what == "name"})
            at = close
        elif kind == "name" and following == "(":
            assert word in FUNCTIONS or word in AGGREGATIONS or word in WORDS, word
        elif kind == "name" and word not in WORDS | AGGREGATIONS:
            assert word in known, f"there is no {word}"
            said |= set(known[word])
            if following == "{":
                close = next(i for i in range(at, len(read)) if read[i][1] == "}")
                inside = read[at + 2 : close]
                for (_, label), (_, sign), (_, text) in zip(inside[::4], inside[1::4], inside[2::4], strict=True):
                    assert label in known[word], f"{word} has no {label}"
                    wanted = text.strip('"').split("|") if sign == "=~" else [text.strip('"')]
                    assert set(wanted) <= known[word][label], f"{label} of {word} is never {text}"
                at = close
        at += 1
    assert open_brackets == [], expression
    for labels in scopes:
        assert labels <= said | OF_SCRAPES, f"{labels - said} in {expression}"


@pytest.fixture(scope="module")
def known() -> dict[str, dict[str, set[str]]]:
    """Each series that a server tells of, and each rule; with its labels and their values."""
    clock = ManualClock()
    history = HistoryProgress()
    history.begun(clock.now())
    served = Served(clock, delivery=told(Mailbox(), clock), history=history)
    served.table()
    served.append(TableName("lake", ("db",), "events"), "more")
    served.control.maintainer.look(TableName("lake", ("db",), "events"))
    served.post("/optimizers", hello())
    served.get("/backlog", resource_group="default", submitter_id="submitter-1")
    served.control.loop._round_ended_at = served.clock.now()
    served.app.state.leading.buckets, served.app.state.leading.differing = 128, 1
    served.app.state.leading.link = CoordinatorLink("zookeeper", LinkState.CONNECTED, 1)
    served.prunings.note(dict.fromkeys(RowKind, 1), {})
    found: dict[str, dict[str, set[str]]] = {}
    for family in text_string_to_metric_families(served.http.get(f"{V1}/metrics").text):
        for sample in family.samples:
            labels = found.setdefault(sample.name, {})
            for label, value in sample.labels.items():
                labels.setdefault(label, set()).add(value)
    for rule in rules(RULES):
        names = [name for kind, name in tokens(rule["expr"]) if kind == "name"]
        sources = [found[name] for name in names if name in found]
        found[rule["record"]] = {label: values for source in sources for label, values in source.items()}
    return found


def rules(document: Any) -> list[Any]:
    return [rule for group in document["groups"] for rule in group["rules"]]


def expressions() -> Iterator[tuple[str, str]]:
    for rule in rules(RULES):
        yield rule["record"], rule["expr"]
    for rule in rules(ALERTS):
        yield rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


EXPRESSIONS = list(expressions())


def test_every_expression_asks_for_what_there_is(known: dict[str, dict[str, set[str]]]) -> None:
    assert len(EXPRESSIONS) > 40
    for _, expression in EXPRESSIONS:
        check(expression, known)


@each_case(
    "wrong",
    [
        "sum(icewright_no_such_metric)",
        "sum by (colour) (icewright_tasks)",
        'icewright_tasks{colour="red"}',
        'icewright_tasks{state="queueing"}',
        "sum(icewright_tasks",
        "sum(icewright_tasks}",
        "median(icewright_tasks)",
        "icewright_tasks[5parsecs]",
        "icewright_task_changes",
    ],
)
def test_the_check_would_notice(wrong: str, known: dict[str, dict[str, set[str]]]) -> None:
    with pytest.raises(AssertionError):
        check(wrong, known)


def test_every_metric_is_shown_or_alerted_on(known: dict[str, dict[str, set[str]]]) -> None:
    """What nobody looks at need not be told."""
    asked = {name for _, expression in EXPRESSIONS for kind, name in tokens(expression) if kind == "name"}
    bare = {re.sub(r"_(bucket|sum|count|total|created)\Z", "", name) for name in asked | set(known)}
    shown = {re.sub(r"_(bucket|sum|count|total|created)\Z", "", name) for name in asked}
    assert {name for name in bare - shown if not name.startswith("icewright:")} <= {"icewright_build_info"}


def test_every_alert_has_a_section_that_says_what_to_do() -> None:
    for rule in rules(ALERTS):
        page, _, section = rule["annotations"]["runbook"].partition("#")
        assert page in ("docs/troubleshooting.md", "docs/operations.md")
        assert section in anchors(DOCS.parent / page), f"{rule['alert']} leads to {section}"
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"]["summary"]


def test_panels_of_the_dashboard_are_told_apart_and_lie_beside_each_other() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for panel in panels
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    for panel in panels:
        assert panel["type"] == "row" or panel["datasource"]["uid"] == "${datasource}"


def test_every_metric_is_explained(known: dict[str, dict[str, set[str]]]) -> None:
    text = (DOCS / "monitoring.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `icewright_")]
    told = {name for row in rows for name in re.findall(r"`(icewright_[a-z_]+)`", row)}
    there = {re.sub(r"_(bucket|sum|count|created)\Z", "", name) for name in known if not name.startswith("icewright:")}
    begun = {name for name in there if f"{name}_total" in there}  # "_created" of a counter
    assert told == there - begun - {"icewright_read", "icewright_written"}
