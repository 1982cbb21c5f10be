"""The transport: what of the environment it heeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from kube.calls.api import connect
from kube.kinds import NODES
from tests.fakes.scripted_apiserver import kubeconfig_for, says, scripted

NODE = NODES.at("n")


async def test_proxy_of_the_environment_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted(tmp_path) as proxy:
        monkeypatch.setenv("http_proxy", server_of(proxy.kubeconfig))
        kubeconfig = tmp_path / "proxied"
        real = proxy.kubeconfig.read_text()
        kubeconfig.write_text(real.replace(server_of(proxy.kubeconfig), "http://api.example"))
        proxy.will(says({"kind": "Node"}))
        async with connect(kubeconfig) as client:
            found = await client.get(NODE)

    assert found == {"kind": "Node"}


async def test_proxy_is_passed_by_where_the_environment_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    async with scripted(tmp_path) as fake:
        fake.will(says({"kind": "Node"}))
        async with connect(fake.kubeconfig) as client:
            found = await client.get(NODE)

    assert found == {"kind": "Node"}


async def test_password_of_a_netrc_file_is_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    async with scripted(tmp_path) as fake:
        port = int(server_of(fake.kubeconfig).rpartition(":")[2])
        kubeconfig = kubeconfig_for(tmp_path, port, {"token": ""})
        fake.will(says({}))
        async with connect(kubeconfig) as client:
            await client.get(NODE)

    assert "Authorization" not in fake.seen[0].headers


def server_of(kubeconfig: Path) -> str:
    return next(
        line.split("server:")[1].strip().strip('",')
        for line in kubeconfig.read_text().splitlines()
        if "server:" in line
    )
