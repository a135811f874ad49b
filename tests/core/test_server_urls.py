"""Where a server is reached: nothing goes to another machine in the clear."""

from __future__ import annotations

import ssl

import pytest

from icewright.core.errors import Rejected
from icewright.core.server_urls import authorities, client_url, is_loopback, is_public_url, trusted
from tests.cases import each_case


@each_case("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_what_is_of_this_machine(host: str) -> None:
    assert is_loopback(host)


@each_case(
    "host", ["", "0.0.0.1", "::", "10.0.0.1", "::ffff:10.0.0.1", "localhost.example", "127.0.0.1.example", "2130706433"]
)
def test_what_is_not(host: str) -> None:
    assert not is_loopback(host)


@each_case(
    "url",
    ["https://lake.example", "https://lake.example:8443", "https://h/below", "http://127.0.0.1:7077", "http://[::1]:1"],
)
def test_addresses_of_servers(url: str) -> None:
    assert client_url(url) == client_url(url + "/") == url
    assert is_public_url(url) is not url.endswith("below")
    assert not is_public_url(url + "/")


@each_case(
    "url",
    [
        "http://lake.example",
        "http://10.0.0.1:7077",
        "http://0.0.0.0",
        "http://localhost.example",
        "HTTP://lake.example",
    ],
)
def test_t5_a_token_never_goes_to_another_machine_in_the_clear(url: str) -> None:
    with pytest.raises(Rejected, match="in the clear"):
        client_url(url)


@each_case(
    "url",
    [
        "",
        "lake.example",
        "ftp://h",
        "https://",
        "https://me:hunter2@h",
        "https://h?x",
        "https://h#x",
        "https://h:x",
        "https://[::1",
        "http://127.0.0.1@lake.example",
    ],
)
def test_what_is_no_address_is_not_repeated(url: str) -> None:
    with pytest.raises(Rejected) as refused:
        client_url(url)
    assert "hunter2" not in str(refused.value)
    assert not is_public_url(url)


def test_host_headers_have_the_port_or_leave_out_the_usual_one() -> None:
    assert authorities("https://Lake.example") == {"lake.example", "lake.example:443"}
    assert authorities("https://lake.example:443") == {"lake.example", "lake.example:443"}
    assert authorities("https://lake.example:8443") == {"lake.example:8443"}
    assert authorities("http://[::1]") == {"[::1]", "[::1]:80"}


def test_in_the_clear_no_certificate_is_read_and_none_would_be_believed() -> None:
    context = trusted("http://127.0.0.1:7077")
    assert (context.get_ca_certs(), context.verify_mode, context.check_hostname) == ([], ssl.CERT_REQUIRED, True)
