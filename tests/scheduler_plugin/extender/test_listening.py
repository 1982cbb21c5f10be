"""Who may reach the extender: a wrong combination is refused with the flag's name."""

from __future__ import annotations

import pytest

from driver.api import Problem
from scheduler_plugin.extender.listening import (
    Listening,
    TlsFiles,
    parse_listening,
    parse_pages_address,
)

FILES = TlsFiles(certificate="tls.crt", key="tls.key", client_ca="ca.crt")
NONE = TlsFiles()
NEEDS_TLS = (
    "is not a loopback address and needs mutual TLS: set --tls-cert-file, --tls-private-key-file,"
    " --client-ca-file."
)


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("127.0.0.1:10261", "127.0.0.1", 10261),
        ("127.9.9.9:0", "127.9.9.9", 0),
        ("localhost:65535", "127.0.0.1", 65535),
        ("[::1]:10261", "::1", 10261),
    ],
)
def test_loopback_takes_plain_http(address: str, host: str, port: int) -> None:
    assert parse_listening(address, NONE) == Listening(host=host, port=port, tls=None)


@pytest.mark.parametrize(
    ("address", "host"), [("127.0.0.1:1", "127.0.0.1"), ("0.0.0.0:1", "0.0.0.0"), ("[::]:1", "::")]
)
def test_mutual_tls_is_served_on_any_address(address: str, host: str) -> None:
    assert parse_listening(address, FILES) == Listening(host=host, port=1, tls=FILES)


@pytest.mark.parametrize("address", ["0.0.0.0:1", "[::]:1", "10.0.0.7:1"])
def test_other_addresses_need_mutual_tls(address: str) -> None:
    found = parse_listening(address, NONE)

    assert found == Problem("--listen-address", f"{address} {NEEDS_TLS}")


@pytest.mark.parametrize(
    ("tls", "flag"),
    [
        (TlsFiles(certificate="tls.crt", key="tls.key"), "--client-ca-file"),
        (TlsFiles(certificate="tls.crt", client_ca="ca.crt"), "--tls-private-key-file"),
        (TlsFiles(key="tls.key", client_ca="ca.crt"), "--tls-cert-file"),
        (TlsFiles(client_ca="ca.crt"), "--tls-cert-file"),
    ],
)
def test_half_of_tls_is_none(tls: TlsFiles, flag: str) -> None:
    message = "must be set too: TLS needs a certificate, key and client CA."

    assert parse_listening("127.0.0.1:1", tls) == Problem(flag, message)


@pytest.mark.parametrize(
    "address",
    [
        "", ":", "10261", ":10261", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
        "127.0.0.1:1e3", "::1", "::1:10261", "[127.0.0.1]:1", "[::1]", "scheduler:10261",
        "127.0.0.1:\u0661", "127.0.0.1:" + "9" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_address_is_said(address: str) -> None:
    found = parse_listening(address, FILES)

    message = f'"{address}" is not an IP address and a port, such as 127.0.0.1:10261.'
    assert found == Problem("--listen-address", message)


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("127.0.0.1:10262", "127.0.0.1", 10262),
        ("0.0.0.0:1", "0.0.0.0", 1),
        ("[::]:1", "::", 1),
        (":10262", "", 10262),
    ],
)
def test_pages_are_read_on_any_address(address: str, host: str, port: int) -> None:
    assert parse_pages_address(address) == Listening(host=host, port=port, tls=None)


@pytest.mark.parametrize("address", ["somewhere", ":", ":x", "::1"])
def test_what_is_no_address_of_pages_is_said(address: str) -> None:
    message = f'"{address}" is not an IP address and a port, such as 127.0.0.1:10262.'

    assert parse_pages_address(address) == Problem("--pages-address", message)
