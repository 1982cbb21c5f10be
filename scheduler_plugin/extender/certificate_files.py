"""The certificate files with which kube-scheduler and the plugin authenticate to each other.

One authority signs both certificates, and its key is not stored: it signs nothing else.
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
    """The files that `write-certificates` writes; both processes see them under `folder`."""

    folder: str

    @property
    def server(self) -> TlsFiles:
        """The plugin's certificate and key, and the authority that it trusts."""
        return TlsFiles(
            certificate=self._path(SERVER),
            key=self._path(SERVER_KEY),
            client_ca=self._path(AUTHORITY),
        )

    @property
    def caller(self) -> CallerFiles:
        """kube-scheduler's certificate and key, and the authority that it trusts."""
        return CallerFiles(
            certificate=self._path(CALLER),
            key=self._path(CALLER_KEY),
            server_ca=self._path(AUTHORITY),
        )

    @property
    def serve_flags(self) -> list[str]:
        """The TLS flags of `serve`."""
        tls = self.server
        return [
            f"--tls-cert-file={tls.certificate}",
            f"--tls-private-key-file={tls.key}",
            f"--client-ca-file={tls.client_ca}",
        ]

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"
