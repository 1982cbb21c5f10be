"""What kube-scheduler and the plugin beside it show each other on a control plane."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

import pytest

from scheduler_plugin.__main__ import main
from scheduler_plugin.arguments import parse_settings
from scheduler_plugin.extender.certificate_files import CERTIFICATES, KEYS, CertificateFiles
from scheduler_plugin.extender.disk_certificates import write_certificates
from scheduler_plugin.extender.listening import client_names
from scheduler_plugin.extender.scheduler_configuration import CallerFiles
from scheduler_plugin.serve_settings import ServeSettings


def talk(server: ssl.SSLContext, client: ssl.SSLContext) -> tuple[str, ...]:
    """Whom the server finds in the client's certificate, after a handshake in memory."""
    pipes = [ssl.MemoryBIO() for _ in range(2)]
    serves = server.wrap_bio(pipes[0], pipes[1], server_side=True)
    asks = client.wrap_bio(pipes[1], pipes[0], server_hostname="127.0.0.1")
    todo = [asks, serves]
    while todo:
        side = todo.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            todo.append(side)
    return client_names(serves.getpeercert() or {})


def a_server(files: CertificateFiles) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=files.server.client_ca)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(files.server.certificate, files.server.key)
    return context


def a_caller(files: CallerFiles, trusted: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=trusted or files.server_ca)
    context.load_cert_chain(files.certificate, files.key)
    return context


def test_each_believes_the_other_and_nobody_else(tmp_path: Path) -> None:
    ours, others = (tmp_path / name for name in ("ours", "others"))
    for folder in (ours, others):
        folder.mkdir()
        write_certificates(folder)
    files, strange = CertificateFiles(str(ours)), CertificateFiles(str(others))

    assert talk(a_server(files), a_caller(files.caller)) == ("system:kube-scheduler",)
    with pytest.raises(ssl.SSLError):
        talk(a_server(files), a_caller(strange.caller, trusted=files.caller.server_ca))
    with pytest.raises(ssl.SSLError):
        talk(a_server(strange), a_caller(files.caller))


def test_keys_are_for_root_alone_and_that_of_the_authority_is_nowhere(tmp_path: Path) -> None:
    write_certificates(tmp_path)

    assert {file.name for file in tmp_path.iterdir()} == {*CERTIFICATES, *KEYS}
    for name in KEYS:
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    keys = [name for name in CERTIFICATES if "PRIVATE" in (tmp_path / name).read_text()]
    assert keys == []


def test_what_kube_scheduler_may_be_using_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["moorage-scheduler-plugin", "write-certificates", f"--folder={tmp_path}"]
    monkeypatch.setattr("sys.argv", command)
    assert main() == 0
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    assert main() == 1

    assert "ca.crt exists already: delete it" in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_the_flags_are_those_of_serve(tmp_path: Path) -> None:
    files = CertificateFiles(str(tmp_path))

    settings = parse_settings(["serve", *files.serve_flags], {})

    assert isinstance(settings, ServeSettings)
    assert settings.listening.tls == files.server
