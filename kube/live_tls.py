"""TLS that is served while its certificate is exchanged.

A context changed in place could be left half changed, by a key that belongs to another
certificate, and would show certificates of other key types beside the new one. So each credential
gets a context of its own, whole or not at all, and the context of the listener hands every
handshake to the newest. Connections that are established notice nothing.
"""

import asyncio
import contextlib
import logging
import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from kube.calls.errors import said

log = logging.getLogger(__name__)

PERIOD_SECONDS = 2.0
"""How often files are looked at: they are small, and only their contents tell all changes."""


class CertificateError(Exception):
    """Raised with a sentence when a certificate, its key or an authority cannot be used."""


@dataclass(frozen=True, slots=True)
class TlsCredential:
    """What a server or a client shows, all of it PEM.

    client_ca: the authority whose certificates the other side must show; b"" where it shows none.
    """

    certificate: bytes
    key: bytes
    client_ca: bytes = b""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where a credential is kept; a mounted Secret, for example."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def read(self) -> TlsCredential:
        """Raises CertificateError if a file cannot be read."""
        try:
            client_ca = self.client_ca.read_bytes() if self.client_ca else b""
            return TlsCredential(self.certificate.read_bytes(), self.key.read_bytes(), client_ca)
        except OSError as error:
            raise CertificateError(f"{self} cannot be used: {error}") from error

    def __str__(self) -> str:
        named = [self.certificate, self.key, *([self.client_ca] if self.client_ca else [])]
        return f"{', '.join(map(str, named[:-1]))} and {named[-1]}"


class LiveTls:
    """The context of a listener, and what its next handshakes show.

    context: for the listener; handshakes fail as long as there is no credential.
    """

    def __init__(self, *, ciphers: str = "", asks_clients: bool = False) -> None:
        """`asks_clients`: every credential names the authority of the clients, too."""
        self._ciphers = ciphers
        self._asks_clients = asks_clients
        self._newest: ssl.SSLContext | None = None
        self.context = self._new_context()
        self.context.sni_callback = self._choose
        # A resumed session shows no certificate, neither ours nor the client's.
        self.context.options |= ssl.OP_NO_TICKET
        self.context.num_tickets = 0

    def show(self, credential: TlsCredential) -> None:
        """Show it from the next handshake on.

        Raises:
            CertificateError: It cannot be used; what was shown before still is.
        """
        context = self._new_context()
        _load(context, credential, with_authority=self._asks_clients)
        self._newest = context

    def _new_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if self._ciphers:
            context.set_ciphers(self._ciphers)
        context.verify_mode = ssl.CERT_REQUIRED if self._asks_clients else ssl.CERT_NONE
        return context

    def _choose(
        self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str, _old: ssl.SSLContext
    ) -> int | None:
        """Called in every handshake, whether or not the client names a server."""
        if self._newest is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._newest
        return None


def show_files(live: LiveTls, files: TlsFiles) -> TlsCredential:
    """Show what the files say, and return it; raises CertificateError, which names them."""
    credential = files.read()
    _show(live, files, credential)
    return credential


async def follow_files(
    live: LiveTls,
    files: TlsFiles,
    shown: TlsCredential,
    *,
    period_seconds: float = PERIOD_SECONDS,
) -> NoReturn:
    """Show what the files say whenever that is no longer what is shown.

    Whoever writes them may be caught in the middle, so a problem is reported when a second look
    finds it too, and once; what was shown before is shown until the files are repaired.
    """
    problem = reported = ""
    while True:
        await asyncio.sleep(period_seconds)
        before, problem = problem, ""
        try:
            shown = await _look(live, files, shown)
        except CertificateError as error:
            problem = str(error)
        if problem and problem == before != reported:
            log.warning("certificate not reloaded: %s", problem)
            reported = problem
        reported = reported if problem else ""


async def _look(live: LiveTls, files: TlsFiles, shown: TlsCredential) -> TlsCredential:
    """A disk that hangs must stop nothing but this."""
    found = await asyncio.to_thread(files.read)
    if found != shown:
        _show(live, files, found)
        log.info("certificate reloaded: %s", files)
    return found


def _show(live: LiveTls, files: TlsFiles, credential: TlsCredential) -> None:
    try:
        live.show(credential)
    except CertificateError as error:
        raise CertificateError(f"{files} cannot be used: {error}") from error


def client_context(credential: TlsCredential) -> ssl.SSLContext:
    """A context for a client that shows this, and believes servers of its authority alone.

    Raises:
        CertificateError: It cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _load(context, credential, with_authority=True)
    return context


def _load(context: ssl.SSLContext, credential: TlsCredential, *, with_authority: bool) -> None:
    try:
        with _as_file(credential.certificate + b"\n" + credential.key) as path:
            context.load_cert_chain(path, password=_no_password)
        if with_authority:
            context.load_verify_locations(cadata=credential.client_ca.decode("ascii"))
    except (OSError, ValueError, CertificateError) as error:
        raise CertificateError(said(error)) from error


@contextlib.contextmanager
def _as_file(pem: bytes) -> Iterator[str]:
    """A path in memory: OpenSSL reads files alone, and a key is not to be left on a disk."""
    descriptor = os.memfd_create("tls")
    try:
        os.write(descriptor, pem)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _no_password() -> str:
    """Else OpenSSL would ask a terminal."""
    raise CertificateError("the key is encrypted")
