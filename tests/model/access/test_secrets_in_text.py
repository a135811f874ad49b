"""Secrets in errors and lines of logs: what is known, and what looks like one; the rest stays to be read."""

from __future__ import annotations

import json
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from icewright.model.access.secrets_in_text import MASK, SecretsInText, passwords_in, secret_values
from tests.cases import each_case

SECRET = 'hunter2/+"quoted"\\'  # noqa: S105 - to be looked for


def test_a_known_secret_is_masked_however_it_is_spelled() -> None:
    secrets = SecretsInText([SECRET, SECRET[:7], "abc", ""])
    for spelled in (SECRET, quote(SECRET), quote(SECRET, safe=""), json.dumps(SECRET), repr(SECRET)):
        said = secrets.masked(f"the server said {spelled} to us")
        assert "hunter2" not in said, spelled
        assert MASK in said
        assert said.startswith("the server said ")
        assert said.endswith(" to us")
    assert secrets.masked("abc") == "abc"


@each_case(
    ("text", "shown"),
    [
        ("jdbc:postgresql://u:p@ss@h:5432/db?password=abc&x=1", "jdbc:postgresql://u:***@h:5432/db?password=***&x=1"),
        ("Authorization: Bearer abc.def-ghi0123 x", "Authorization: *** *** x"),
        ("sent with bearer abcdefgh0123", "sent with bearer ***"),
        ("s3.secret-access-key=abc, s3.endpoint=http://x", "s3.secret-access-key=***, s3.endpoint=http://x"),
        ("{'token': 'a b c', 'x': 1}", "{'token': ***, 'x': 1}"),
        ('{"s3.session-token":"q\\"x","a":1}', '{"s3.session-token":***,"a":1}'),
        ("https://b/x?X-Amz-Signature=01&X-Amz-Date=2", "https://b/x?X-Amz-Signature=***&X-Amz-Date=2"),
        ("https://b/x?se=2&sig=abc%3D&sp=r", "https://b/x?se=2&sig=***&sp=r"),
        ("key AKIAABCDEFGHIJKLMNOP is unknown", "key *** is unknown"),
        ("fs.s3a.secret.key: abc", "fs.s3a.secret.key: ***"),
        ('{\\"token\\":\\"abc\\",\\"x\\":1}', '{\\"token\\":***,\\"x\\":1}'),
        ("password => abc -> x", "password => *** -> x"),
        ("Password:       abc", "Password:       ***"),
        ("x-api-key: abc", "x-api-key: ***"),
        ("pwd=abc passphrase=abc s3.sse.key=abc", "pwd=*** passphrase=*** s3.sse.key=***"),
        (
            "<SecretAccessKey>abc</SecretAccessKey><Code>x</Code>",
            "<SecretAccessKey>***</SecretAccessKey><Code>x</Code>",
        ),
        (
            "is -----BEGIN RSA PRIVATE KEY-----\nabc\nde-f\n-----END RSA PRIVATE KEY-----",
            "is ***-----END RSA PRIVATE KEY-----",
        ),
        ("password=ab,cd;ef(g) x", "password=*** x"),
        ("token=abc, x=1", "token=***, x=1"),
        ("token=abc,x=1", "token=***,x=1"),
        ("sent Bearer%20abc%2Fdefgh0123 x", "sent Bearer%20*** x"),
        ("X-Amz-Security-Token%3Dabc%26x%3D1", "X-Amz-Security-Token%3D***%26x%3D1"),
        ("postgresql://u:" + "p" * 5000 + "@h/db", "postgresql://u:***@h/db"),
        ("run with --password abc --name x", "run with --password *** --name x"),
        ("AWS 0123456789ABCDEFGHIJ:abcdefgh+/= x", "AWS 0123456789ABCDEFGHIJ:*** x"),
        ("is eyJhbGciOiJIUzI1.eyJzdWIiOiIx.c2ln expired?", "is *** expired?"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str, shown: str) -> None:
    assert SecretsInText().masked(text) == shown


@each_case(
    "text",
    [
        "org.apache.iceberg.exceptions.NotAuthorizedException: Not authorized: no permission",
        "java.lang.SecurityException: token expired",
        "Spark could not load lake.db.auth_tokens: it is away",
        "\tat org.apache.auth.Filter.doFilter(Filter.java:12)",
        'File "pyspark/auth.py", line 3, in token',
        "wrote s3://bucket/table/data/file.parquet at 12:30:45",
        "phase begins phase=merging groups=12",
    ],
)
def test_what_people_need_stays(text: str) -> None:
    assert SecretsInText([SECRET]).masked(text) == text


@each_case("spelled", ["a%2fb%3d~%3c*", "a%2Fb%3D%7E%3C*", "a/b=~&lt;*"])
def test_a_known_secret_is_masked_as_java_and_others_spell_it(spelled: str) -> None:
    assert SecretsInText(["a/b=~<*"]).masked(f"GET {spelled} failed") == "GET *** failed"


def test_values_that_are_words_of_every_sentence_are_no_secrets() -> None:
    properties = {"token-refresh-enabled": "true", "rest.auth.type": "oauth2", "token": "abcd"}
    assert list(secret_values(properties)) == ["abcd"]


@each_case(
    ("address", "found"),
    [
        ("postgresql://u:p#a/b?c@h/db", {"p#a/b?c"}),
        ("postgresql://u:p@ss@h/db", {"p@ss", "p"}),
        ("jdbc:postgresql://h/db?user=u&password=pw1&x=1", {"pw1"}),
        ("jdbc:sqlserver://h;user=u;password=pw2", {"pw2"}),
        ("thrift://h:9083", set()),
    ],
)
def test_an_address_tells_its_passwords(address: str, found: set[str]) -> None:
    assert set(passwords_in(address)) == found


@given(text=st.text() | st.text("=:'\"@/?& token.eyJ", max_size=200))
def test_any_text_is_taken_and_the_known_secret_never_shown(text: str) -> None:
    assert SECRET not in SecretsInText([SECRET]).masked(f"{text}{SECRET}{text}")


@each_case(
    "evil",
    [
        "a",
        "://",
        "://a:b",
        "://a:b@",
        "a:",
        "a='",
        "token='",
        'token="\\',
        "eyJ",
        "bearer ",
        "a.b-",
        "'",
        " =:",
        "://a:@",
        "<token>",
        "-----BEGIN PRIVATE KEY-----",
        "token=\\'",
        "--token ",
        "token=,",
        "%20AWS ",
    ],
)
def test_a_text_that_is_meant_to_keep_us_busy_is_read_once(evil: str) -> None:
    """A search that goes back from each place would take hours for it."""
    said = SecretsInText([SECRET]).masked(f"{evil * 100_000} {SECRET} {evil * 100_000} x")
    assert "hunter2" not in said
    assert said.endswith(("x", MASK))
