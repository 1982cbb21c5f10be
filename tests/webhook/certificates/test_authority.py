"""Keys and certificates as the Secret holds them, and what is made of damaged ones."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta

import pytest

from kube.live_tls import LiveTls, TlsCredential
from webhook.certificates import authority
from webhook.certificates.authority import Pair, new_authority, new_certificate
from webhook.certificates.rotation import CaState

NOW = datetime.now(UTC).replace(microsecond=0)
LIFE = timedelta(days=90)
HOUR = timedelta(hours=1)
NAMES = frozenset({"localhost", "127.0.0.1"})


def made() -> dict[str, bytes]:
    ca = new_authority(LIFE, NOW)
    return CaState((ca.certificate,), ca, new_certificate(ca, NAMES, LIFE, NOW)).data()


def span(pair: Pair) -> tuple[datetime, datetime]:
    return pair.certificate.not_valid_before_utc, pair.certificate.not_valid_after_utc


def test_what_is_made_is_read_again() -> None:
    data = made()

    state = CaState.of(data)

    assert state.data() == data
    assert state.signer is not None
    assert state.trusted == (state.signer.certificate,)
    assert span(state.signer) == (NOW - HOUR, NOW + 4 * LIFE)
    assert state.served is not None
    assert authority.is_signed_by(state.served.certificate, state.signer.certificate)
    assert authority.names_of(state.served.certificate) == NAMES
    assert span(state.served) == (NOW - HOUR, NOW + LIFE)


def test_a_certificate_ends_with_its_authority_at_the_latest() -> None:
    ca = new_authority(LIFE, NOW - 3.5 * LIFE)

    assert span(new_certificate(ca, NAMES, LIFE, NOW)) == (NOW - HOUR, NOW + 0.5 * LIFE)


def test_a_certificate_of_nobody_who_is_trusted_is_of_no_use() -> None:
    assert CaState.of({**made(), "ca.crt": made()["ca.crt"]}).served is None


@pytest.mark.parametrize("key", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
@pytest.mark.parametrize(
    "damage", [b"", b"\xff\x00", b"-----BEGIN CERTIFICATE-----\nAAAA", None], ids=repr
)
def test_damage_costs_what_depends_on_it(key: str, damage: bytes | None) -> None:
    good, other = made(), made()
    data = {**good, key: other[key] if damage is None else damage}

    before, state = CaState.of(good), CaState.of(data)

    assert state.served is None or key == "ca.key"
    assert state.signer is None or key.startswith("tls")
    assert state.trusted == before.trusted or key == "ca.crt"


async def test_python_and_openssl_verify_it_by_its_authority_alone() -> None:
    data, stranger = made(), made()
    live = LiveTls()
    live.show(TlsCredential(data["tls.crt"], data["tls.key"]))
    server = await asyncio.start_server(_hang_up, "127.0.0.1", 0, ssl=live.context)
    port = server.sockets[0].getsockname()[1]
    async with server:
        for name in ("localhost", "127.0.0.1"):
            assert await _verifies(port, data["ca.crt"], name)
        assert await _verifies(port, stranger["ca.crt"] + data["ca.crt"], "localhost")
        assert not await _verifies(port, stranger["ca.crt"], "localhost")
        assert not await _verifies(port, data["ca.crt"], "other.example")


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
