"""TLS whose certificate is replaced while it is served.

Changing a context in place could leave it half changed, by a key of another certificate, and would
keep certificates of other key types beside the new one. So each credential gets a context of its
own, and the context of the listener passes each handshake to the newest. Established connections
are not affected.
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
"""How often the files are read: they are small, and only their contents show every change."""


class CertificateError(Exception):
    """Raised when a certificate, its key or an authority cannot be used; says why."""


@dataclass(frozen=True, slots=True)
class TlsCredential:
    """Certificate and key that a server or a client presents, in PEM.

    client_ca: the authority that must have signed the peer's certificate; b"" if the peer presents
        none.
    """

    certificate: bytes
    key: bytes
    client_ca: bytes = b""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The files of a credential, such as those of a mounted Secret."""

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
    """The TLS context of a listener, and the credential that it presents.

    context: for the listener; handshakes fail until `show` was called.
    """

    def __init__(self, *, ciphers: str = "", asks_clients: bool = False) -> None:
        """`asks_clients`: clients must present a certificate of the credential's `client_ca`."""
        self._ciphers = ciphers
        self._asks_clients = asks_clients
        self._newest: ssl.SSLContext | None = None
        self.context = self._new_context()
        self.context.sni_callback = self._choose
        # A resumed session presents no certificate, neither the server's nor the client's.
        self.context.options |= ssl.OP_NO_TICKET
        self.context.num_tickets = 0

    def show(self, credential: TlsCredential) -> None:
        """Present the credential from the next handshake on.

        Raises:
            CertificateError: It cannot be used; the credential before it stays in use.
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
        """OpenSSL calls this in every handshake, with or without a server name."""
        if self._newest is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._newest
        return None


def show_files(live: LiveTls, files: TlsFiles) -> TlsCredential:
    """Present the credential of the files, and return it.

    Raises:
        CertificateError: It cannot be used; names the files.
    """
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
    """Present the credential of the files whenever they change, until cancelled.

    A read may find the files half written. So a problem is logged once, and only if the next read
    finds it, too. The credential before it stays in use until the files are repaired.
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
    """Read in a thread: a disk that hangs must not block the event loop."""
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
    """A context for a client that presents this, and trusts servers of `client_ca` only.

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
    """A file in memory: OpenSSL reads files only, and a key must not be written to a disk."""
    descriptor = os.memfd_create("tls")
    try:
        os.write(descriptor, pem)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _no_password() -> str:
    """Without this, OpenSSL would ask on the terminal."""
    raise CertificateError("the key is encrypted")
