"""Mutual TLS between the driver and handlers on the network, with files that may be renewed."""

from __future__ import annotations

import logging

import grpc

from driver.handlers.sdk_requests import TlsFiles

logger = logging.getLogger(__name__)


def channel_credentials(files: TlsFiles) -> grpc.ChannelCredentials:
    """The credentials of the driver.

    Raises:
        OSError: If a file cannot be read.
    """
    return grpc.ssl_channel_credentials(
        files.authority.read_bytes(), files.key.read_bytes(), files.certificate.read_bytes()
    )


def server_credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """The credentials of a handler; they require a certificate of the client.

    Raises:
        OSError: If a file cannot be read.
    """
    last = _configuration(files)

    def renewed() -> grpc.ServerCertificateConfiguration:
        nonlocal last
        try:
            last = _configuration(files)
        except OSError as error:
            logger.warning("certificate not read again: %s", error)
        return last

    return grpc.dynamic_ssl_server_credentials(last, renewed, require_client_authentication=True)


def _configuration(files: TlsFiles) -> grpc.ServerCertificateConfiguration:
    pair = (files.key.read_bytes(), files.certificate.read_bytes())
    return grpc.ssl_server_certificate_configuration([pair], files.authority.read_bytes())
