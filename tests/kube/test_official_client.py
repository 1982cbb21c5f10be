"""The official client: where configuration and credentials come from, and what is not loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kube import official_client
from kube.api import KubeconfigError, UnavailableError, connect
from kube.official_client import load_configuration
from tests.kube.builders import NODES
from tests.kube.fake_apiserver import fake_apiserver, kubeconfig_for, says

NODE = NODES.at("n")

SAY_WHAT_IS_LOADED = """
import sys
import kube.api
print(*sys.modules)
"""

USE_THE_DEFERRED_HALF = """
import kube.api
import kubernetes
from kubernetes.client import V1Pod
print(kubernetes.client.CoreV1Api.__name__, kubernetes.config.load_kube_config.__name__, V1Pod())
"""

USE_THE_API_CLIENT = """
import kube.api
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import kube_config
made = kube_config.ApiClient(configuration=Configuration(host="https://here"))
print(ApiClient.__name__, type(made) is ApiClient, made.configuration.host)
"""


def output_of(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_synchronous_half_of_the_client_is_not_loaded() -> None:
    loaded = set(output_of(SAY_WHAT_IS_LOADED).split())

    assert loaded & {"requests", "urllib3", "oauthlib", "websocket"} == set()
    assert loaded & {"pydantic", "kubernetes.aio.client.api_client"} == set()
    assert "kubernetes.client.models.v1_pod" not in loaded
    assert "kubernetes.aio.client.models.v1_pod" not in loaded


def test_synchronous_half_is_there_for_whoever_uses_it() -> None:
    assert output_of(USE_THE_DEFERRED_HALF).startswith("CoreV1Api load_kube_config")


def test_api_client_is_there_for_whoever_uses_it() -> None:
    assert output_of(USE_THE_API_CLIENT).split() == ["ApiClient", "True", "https://here"]


async def test_token_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(official_client, "REFRESH_SECONDS", 0)
    token = tmp_path / "token"
    async with fake_apiserver(tmp_path) as fake:
        port = int(fake.kubeconfig.read_text().split("127.0.0.1:")[1].split()[0])
        kubeconfig = kubeconfig_for(tmp_path, port, {"tokenFile": str(token)})
        token.write_text("one")
        fake.will(says({}), says({}))
        async with connect(kubeconfig) as client:
            await client.get(NODE)
            token.write_text("two")
            await client.get(NODE)

    assert [seen.headers["Authorization"] for seen in fake.seen] == ["Bearer one", "Bearer two"]


async def test_pod_uses_its_service_account_and_reads_its_token_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["kubernetes.aio.config.incluster_config"]
    token, certificate = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("one")
    certificate.write_text("certificate")
    monkeypatch.setattr(module, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(module, "SERVICE_CERT_FILENAME", str(certificate))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")

    configuration = await load_configuration(None)
    before = await configuration.auth_settings()
    token.write_text("two")
    settled = await configuration.auth_settings()

    assert configuration.host == "https://[fd00::1]:443"
    assert before["BearerToken"]["value"] == "bearer one"
    # The official client reads the file once a minute.
    assert settled["BearerToken"]["value"] == "bearer one"
    assert configuration.refresh_api_key_hook is not None


async def test_missing_credentials_are_a_failure_that_may_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(official_client, "REFRESH_SECONDS", 0)
    token = tmp_path / "token"
    token.write_text("one")
    async with connect(kubeconfig_for(tmp_path, 1, {"tokenFile": str(token)})) as client:
        token.unlink()

        with pytest.raises(UnavailableError, match="credentials"):
            await client.get(NODE)


async def test_settings_of_the_user_are_found_without_a_file_or_a_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    module = sys.modules["kubernetes.aio.config.kube_config"]
    monkeypatch.setattr(module, "KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig_for(tmp_path, 7)))

    configuration = await load_configuration(None)

    assert configuration.host == "http://127.0.0.1:7"


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
        await load_configuration(file)


async def test_proxy_of_the_environment_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake_apiserver(tmp_path) as proxy:
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
    async with fake_apiserver(tmp_path) as fake:
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
    async with fake_apiserver(tmp_path) as fake:
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
