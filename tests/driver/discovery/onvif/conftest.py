"""Fixtures of the tests of cameras."""

from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path

import pytest

from driver.discovery.onvif import cameras
from tests.driver.discovery.certificates import self_signed


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no camera that is silent."""
    monkeypatch.setattr(cameras, "REQUEST_TIMEOUT", timedelta(seconds=20))


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch, _patient: None) -> None:
    monkeypatch.setattr(cameras, "REQUEST_TIMEOUT", timedelta(seconds=1))


@pytest.fixture(name="certificate", scope="module")
def _certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, str]:
    """A camera's own certificate."""
    folder: Path = tmp_path_factory.mktemp("camera")
    certificate, key = self_signed()
    (folder / "both.pem").write_text(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    return context, certificate
