"""A listener whose certificate changes while it listens."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kube.live_tls import (
    CertificateError,
    LiveTls,
    TlsCredential,
    TlsFiles,
    follow_files,
    show_files,
)
from local_cluster.authority import Authority
from local_cluster.certificates import CertificateSpec
from webhook.certificates.authority import new_authority, new_certificate, pem_of

NOW = datetime.now(UTC)
LIFE = timedelta(days=1)
SOON = 0.001

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Listener:
    """Sends back what it is sent."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def connect(self, client: tuple[Path, Path] | None = None) -> Connection:
        """As a client that looks at the certificate, and believes everything."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if client:
            context.load_cert_chain(*client)
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=context)

    async def shown(self) -> bytes:
        connection = await self.connect()
        try:
            return shown_on(connection)
        finally:
            connection[1].close()

    async def until_shown(self, credential: TlsCredential) -> None:
        async with asyncio.timeout(10):
            while await self.shown() != der(credential):
                pass


def a_credential(client_ca: bytes = b"") -> TlsCredential:
    made = new_certificate(new_authority(LIFE, NOW), ("localhost",), LIFE, NOW)
    return TlsCredential(pem_of([made.certificate]), made.key_pem(), client_ca)


def der(credential: TlsCredential) -> bytes:
    return ssl.PEM_cert_to_DER_cert(credential.certificate.decode())


def shown_on(connection: Connection) -> bytes:
    found: bytes = connection[1].get_extra_info("ssl_object").getpeercert(binary_form=True)
    return found


async def echo(connection: Connection) -> bytes:
    reader, writer = connection
    writer.write(b"hello\n")
    return await reader.readline()


@asynccontextmanager
async def listening(live: LiveTls) -> AsyncIterator[Listener]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while line := await reader.readline():
                writer.write(line)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=live.context) as server:
        yield Listener(server.sockets[0].getsockname()[1])


@asynccontextmanager
async def followed(live: LiveTls, files: TlsFiles) -> AsyncIterator[None]:
    task = asyncio.create_task(
        follow_files(live, files, show_files(live, files), period_seconds=SOON)
    )
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    """As the kubelet mounts a Secret: links through a link that it exchanges."""
    found = TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key")
    found.certificate.symlink_to("..data/tls.crt")
    found.key.symlink_to("..data/tls.key")
    return found


def write(files: TlsFiles, credential: TlsCredential) -> None:
    folder = files.certificate.parent
    version = folder / f"version-{len(list(folder.iterdir()))}"
    version.mkdir()
    (version / "tls.crt").write_bytes(credential.certificate)
    (version / "tls.key").write_bytes(credential.key)
    link = folder / "new"
    link.symlink_to(version.name)
    link.rename(folder / "..data")


async def test_new_handshakes_show_the_new_one_and_old_connections_stay() -> None:
    live, first, second = LiveTls(), a_credential(), a_credential()
    live.show(first)
    async with listening(live) as listener:
        before = await listener.connect()
        live.show(second)
        after = await listener.connect()

        assert (shown_on(before), shown_on(after)) == (der(first), der(second))
        assert await echo(before) == await echo(after) == b"hello\n"
        before[1].close()
        after[1].close()


async def test_without_a_certificate_handshakes_fail_until_there_is_one() -> None:
    live, credential = LiveTls(), a_credential()
    async with listening(live) as listener:
        with pytest.raises(ConnectionError):
            await listener.connect()
        live.show(credential)

        assert await listener.shown() == der(credential)


@pytest.mark.parametrize(
    "wrong",
    [
        TlsCredential(a_credential().certificate, a_credential().key),
        TlsCredential(b"", b""),
        TlsCredential(a_credential().certificate, b""),
        TlsCredential(b"-----BEGIN CERTIFICATE-----\nAAAA", a_credential().key),
    ],
    ids=["mismatched", "empty", "half", "damaged"],
)
async def test_what_cannot_be_used_leaves_what_was_there(wrong: TlsCredential) -> None:
    live, credential = LiveTls(), a_credential()
    live.show(credential)
    async with listening(live) as listener:
        with pytest.raises(CertificateError):
            live.show(wrong)

        assert await listener.shown() == der(credential)


async def test_who_must_show_a_certificate_changes_with_the_credential(tmp_path: Path) -> None:
    friend, stranger = Authority(tmp_path / "friend"), Authority(tmp_path / "stranger")
    live = LiveTls(asks_clients=True)
    live.show(a_credential(friend.certificate_file.read_bytes()))
    async with listening(live) as listener:
        assert await is_heard(listener, friend)
        assert not await is_heard(listener, stranger)

        live.show(a_credential(stranger.certificate_file.read_bytes()))

        assert await is_heard(listener, stranger)
        assert not await is_heard(listener, friend)


async def is_heard(listener: Listener, issuer: Authority) -> bool:
    files = issuer.issue(CertificateSpec("client", "client"))
    try:
        connection = await listener.connect(files)
        answer = await echo(connection)
    except OSError:
        return False
    connection[1].close()
    return answer == b"hello\n"


async def test_a_secret_that_is_mounted_anew_is_shown(files: TlsFiles) -> None:
    live, first, second = LiveTls(), a_credential(), a_credential()
    write(files, first)
    async with followed(live, files), listening(live) as listener:
        assert await listener.shown() == der(first)
        write(files, second)

        await listener.until_shown(second)


async def test_half_written_files_are_reported_once_and_read_when_they_are_whole(
    files: TlsFiles, caplog: pytest.LogCaptureFixture
) -> None:
    live, first, second = LiveTls(), a_credential(), a_credential()
    write(files, first)
    caplog.set_level(logging.WARNING, "kube.live_tls")
    async with followed(live, files), listening(live) as listener:
        write(files, TlsCredential(second.certificate, first.key))
        async with asyncio.timeout(10):
            while not caplog.records:
                assert await listener.shown() == der(first)
        for _ in range(5):
            assert await listener.shown() == der(first)
        write(files, second)
        await listener.until_shown(second)

    (record,) = caplog.records
    assert f"{files.certificate} and {files.key} cannot be used" in record.getMessage()


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    files = TlsFiles(tmp_path / "a", tmp_path / "b", tmp_path / "c")

    with pytest.raises(CertificateError, match=f"{tmp_path}/a, {tmp_path}/b and {tmp_path}/c "):
        show_files(LiveTls(), files)


def test_an_encrypted_key_is_refused_and_nobody_is_asked() -> None:
    encrypted = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----"

    with pytest.raises(CertificateError):
        LiveTls().show(TlsCredential(a_credential().certificate, encrypted))
