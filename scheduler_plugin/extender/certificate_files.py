"""The files of a control plane by which kube-scheduler and the plugin know each other.

One authority signs both, and its key is kept nowhere: no third process gets a certificate of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_plugin.extender.listening import TlsFiles
from scheduler_plugin.extender.scheduler_configuration import CallerFiles

AUTHORITY = "ca.crt"
SERVER, SERVER_KEY = "plugin.crt", "plugin.key"
CALLER, CALLER_KEY = "scheduler.crt", "scheduler.key"
CERTIFICATES, KEYS = (AUTHORITY, SERVER, CALLER), (SERVER_KEY, CALLER_KEY)


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Where `write-certificates` puts them; both processes see them under this path."""

    folder: str

    @property
    def server(self) -> TlsFiles:
        """What the plugin shows, and whom it believes."""
        return TlsFiles(
            certificate=self._path(SERVER),
            key=self._path(SERVER_KEY),
            client_ca=self._path(AUTHORITY),
        )

    @property
    def caller(self) -> CallerFiles:
        """What kube-scheduler shows, and whom it believes."""
        return CallerFiles(
            certificate=self._path(CALLER),
            key=self._path(CALLER_KEY),
            server_ca=self._path(AUTHORITY),
        )

    @property
    def serve_flags(self) -> list[str]:
        """Of `serve`."""
        tls = self.server
        return [
            f"--tls-cert-file={tls.certificate}",
            f"--tls-private-key-file={tls.key}",
            f"--client-ca-file={tls.client_ca}",
        ]

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"
