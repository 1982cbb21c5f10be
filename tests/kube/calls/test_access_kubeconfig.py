"""The official client: what it makes of kubeconfigs, and that nobody else pays for it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from kube.calls import apiserver_access
from kube.calls.api import KubeconfigError, UnavailableError, connect
from kube.calls.apiserver_access import kubeconfig_access
from kube.kinds import NODES
from tests.fakes.scripted_apiserver import kubeconfig_for, says, scripted

NODE = NODES.at("n")

SAY_WHAT_IS_LOADED = """
import sys
import kube.calls.api, driver.running.settings
import driver.running.node.node_main, driver.discovery.udev.handler
print(*sys.modules)
"""


def test_a_node_s_driver_loads_nothing_of_it_without_a_kubeconfig() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SAY_WHAT_IS_LOADED], capture_output=True, text=True, check=True
    )

    assert set(done.stdout.split()) & {"kubernetes", "pydantic", "requests", "urllib3"} == set()


async def test_token_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apiserver_access, "REFRESH_SECONDS", 0)
    token = tmp_path / "token"
    async with scripted(tmp_path) as fake:
        port = int(fake.kubeconfig.read_text().split("127.0.0.1:")[1].split()[0])
        kubeconfig = kubeconfig_for(tmp_path, port, {"tokenFile": str(token)})
        token.write_text("one")
        fake.will(says({}), says({}))
        async with connect(kubeconfig) as client:
            await client.get(NODE)
            token.write_text("two")
            await client.get(NODE)

    assert [seen.headers["Authorization"] for seen in fake.seen] == ["Bearer one", "Bearer two"]


async def test_missing_credentials_are_a_failure_that_may_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apiserver_access, "REFRESH_SECONDS", 0)
    token = tmp_path / "token"
    token.write_text("one")
    async with connect(kubeconfig_for(tmp_path, 1, {"tokenFile": str(token)})) as client:
        token.unlink()

        with pytest.raises(UnavailableError, match="credentials"):
            await client.get(NODE)


async def test_settings_of_the_user_are_found_without_a_file_or_a_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module("kubernetes.aio.config.kube_config")
    monkeypatch.setattr(module, "KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig_for(tmp_path, 7)))

    found = await kubeconfig_access(None)

    assert found.host == "http://127.0.0.1:7"


async def test_of_an_absent_kubeconfig_just_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="cannot be used: there is no such file"):
        await kubeconfig_access(tmp_path / "kubeconfig")


async def test_a_kubeconfig_that_cannot_be_looked_at_is_absent(tmp_path: Path) -> None:
    """As in a folder that may not be entered; a path that is too long is one for root, too."""
    with pytest.raises(KubeconfigError, match="cannot be used: there is no such file"):
        await kubeconfig_access(tmp_path / ("a" * 300))


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "[]",
        "a: [",
        "\x00",
        "current-context: x",
        "{current-context: x, contexts: [], clusters: [], users: []}",
        "{current-context: x, contexts: 7}",
    ],
)
async def test_a_kubeconfig_of_no_use_is_named(text: str | None, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    if text is not None:
        file.write_text(text)

    with pytest.raises(KubeconfigError, match=f"kubeconfig {file} cannot be used: "):
        await kubeconfig_access(file)


async def test_a_context_may_be_named_and_says_the_namespace(tmp_path: Path) -> None:
    file = kubeconfig_for(tmp_path, 7)
    known = yaml.safe_load(file.read_text())
    (first,) = known["contexts"]
    known["contexts"].append({"name": "lab", "context": {**first["context"], "namespace": "lab"}})
    file.write_text(yaml.safe_dump(known))

    assert (await kubeconfig_access(file)).namespace == "default"
    assert (await kubeconfig_access(file, "lab")).namespace == "lab"
    with pytest.raises(KubeconfigError, match="elsewhere"):
        await kubeconfig_access(file, "elsewhere")
