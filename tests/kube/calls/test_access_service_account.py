"""The pod's own ServiceAccount: found, read again, and named where it is of no use."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kube.calls import apiserver_access as module
from kube.calls.api import KubeconfigError, UnavailableError
from kube.calls.apiserver_access import service_account
from webhook.certificates.authority import new_authority, pem_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "token").write_text("one\n")
    authority = new_authority(timedelta(days=1), datetime.now(UTC))
    (tmp_path / "ca.crt").write_bytes(pem_of([authority.certificate]))
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return tmp_path


async def test_pod_knows_the_server_and_is_known(folder: Path) -> None:
    found = service_account()

    assert found is not None
    assert found.host == "https://[fd00::1]:443"
    assert len(found.tls.get_ca_certs()) == 1
    assert await found.authorization() == "Bearer one"
    # From Python 3.13 on a default context refuses authorities that kubectl accepts.
    assert not found.tls.verify_flags & ssl.VERIFY_X509_STRICT


async def test_token_is_read_again_when_it_is_due(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = service_account()
    assert found is not None
    (folder / "token").write_text("two")

    assert await found.authorization() == "Bearer one"

    monkeypatch.setattr(module, "REFRESH_SECONDS", 0.0)
    fresh = service_account()
    assert fresh is not None
    (folder / "token").write_text("three")
    assert await fresh.authorization() == "Bearer three"


@pytest.mark.parametrize("text", ["", "\n", None])
async def test_token_that_is_missing_for_a_moment_is_a_failure_that_may_pass(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    monkeypatch.setattr(module, "REFRESH_SECONDS", 0.0)
    found = service_account()
    assert found is not None
    put(folder / "token", text)

    with pytest.raises(UnavailableError, match="credentials"):
        await found.authorization()

    put(folder / "token", "back")
    assert await found.authorization() == "Bearer back"


@pytest.mark.parametrize("name", ["token", "ca.crt"])
@pytest.mark.parametrize("text", ["", None])
async def test_service_account_of_no_use_is_named(
    folder: Path, name: str, text: str | None
) -> None:
    put(folder / name, text)

    with pytest.raises(KubeconfigError, match="the pod's ServiceAccount cannot be used: "):
        service_account()


def test_there_is_none_outside_of_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    assert service_account() is None


def put(file: Path, text: str | None) -> None:
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
