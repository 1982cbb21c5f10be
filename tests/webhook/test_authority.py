"""Keys and certificates as the Secret holds them, and what is made of damaged ones."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta

import pytest

from kube.api import LiveTls, TlsCredential
from webhook import authority
from webhook.certificates import Policy

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)
POLICY = Policy(frozenset({"localhost", "127.0.0.1"}), 90 * DAY)


def made(policy: Policy = POLICY) -> dict[str, bytes]:
    data = authority.with_authority({}, (), policy, NOW)
    return authority.with_certificate(data, policy.names, policy, NOW)


def test_what_is_made_is_read_again() -> None:
    data = made()

    kept = authority.read(data)

    (ca,) = kept.trusted
    assert kept.signer == ca
    assert (ca.not_before, ca.not_after) == POLICY.authority_span(NOW)
    assert kept.served is not None
    assert kept.served.signed_by == ca.identity
    assert kept.served.names == POLICY.names
    assert (kept.served.not_before, kept.served.not_after) == POLICY.span(ca, NOW)


def test_a_new_authority_leaves_the_certificate_and_takes_the_key() -> None:
    data = made()
    before = authority.read(data)

    after = authority.read(authority.with_authority(data, before.trusted, POLICY, NOW))

    assert after.trusted[:-1] == before.trusted
    assert after.signer == after.trusted[-1]
    assert after.served == before.served


def test_a_certificate_of_nobody_who_is_trusted_is_taken_away() -> None:
    data = authority.with_authority(made(), (), POLICY, NOW)

    assert (data[authority.CERTIFICATE], data[authority.KEY]) == (b"", b"")


@pytest.mark.parametrize("key", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
@pytest.mark.parametrize(
    "damage", [b"", b"\xff\x00", b"-----BEGIN CERTIFICATE-----\nAAAA", None], ids=repr
)
def test_damage_costs_what_depends_on_it(key: str, damage: bytes | None) -> None:
    good, other = made(), made()
    data = {**good, key: other[key] if damage is None else damage}

    before, kept = authority.read(good), authority.read(data)

    assert kept.served is None or key == "ca.key"
    assert kept.signer is None or key.startswith("tls")
    assert kept.trusted == before.trusted or key == "ca.crt"


def test_an_authority_of_other_keys_cannot_sign() -> None:
    with pytest.raises(ValueError, match="no authority"):
        authority.with_certificate({}, POLICY.names, POLICY, NOW)


async def test_python_and_openssl_verify_it_by_its_authority_alone() -> None:
    data, stranger = made(), made()
    live = LiveTls()
    live.show(TlsCredential(data[authority.CERTIFICATE], data[authority.KEY]))
    server = await asyncio.start_server(_hang_up, "127.0.0.1", 0, ssl=live.context)
    port = server.sockets[0].getsockname()[1]
    async with server:
        for name in ("localhost", "127.0.0.1"):
            assert await _verifies(port, data[authority.CA_CERTIFICATES], name)
        assert await _verifies(
            port, stranger[authority.CA_CERTIFICATES] + data[authority.CA_CERTIFICATES], "localhost"
        )
        assert not await _verifies(port, stranger[authority.CA_CERTIFICATES], "localhost")
        assert not await _verifies(port, data[authority.CA_CERTIFICATES], "other.example")


async def _hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _verifies(port: int, bundle: bytes, name: str) -> bool:
    context = ssl.create_default_context(cadata=bundle.decode())
    try:
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname=name
        )
    except ssl.SSLCertVerificationError:
        return False
    writer.close()
    return True
