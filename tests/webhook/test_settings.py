"""Command lines, those of the manifests included."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.documents import objects_of_kind
from webhook.settings import parse_settings
from webhook.surroundings import Hold, OtherSchedulers, PodSettings


def test_defaults() -> None:
    settings = parse_settings([], {})

    assert settings.listen_address == ("", 9443)
    assert settings.certificate == Path("/etc/moorage/tls/tls.crt")
    assert settings.key == Path("/etc/moorage/tls/tls.key")
    assert settings.about_pods == PodSettings()
    assert settings.about_pods.scheduler_names == ("moorage",)
    assert settings.accounting.queue_label == "moorage.dev/queue"
    assert settings.kubeconfig is None


def test_the_environment_says_where_the_api_server_is() -> None:
    assert parse_settings([], {"KUBECONFIG": "/k"}).kubeconfig == Path("/k")
    assert parse_settings(["--kubeconfig=/l"], {"KUBECONFIG": "/k"}).kubeconfig == Path("/l")


@pytest.mark.parametrize(
    ("text", "address"),
    [(":1", ("", 1)), ("10.0.0.1:9443", ("10.0.0.1", 9443)), ("[::1]:65535", ("::1", 65535))],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_settings([f"--listen-address={text}"], {}).listen_address == address


def test_several_schedulers_in_their_order() -> None:
    settings = parse_settings(["--scheduler-names=moorage, default-scheduler,,moorage"], {})

    assert settings.about_pods.scheduler_names == ("moorage", "default-scheduler")


def test_what_becomes_of_pods() -> None:
    settings = parse_settings(["--hold=Retry", "--other-schedulers=Allow"], {})

    assert settings.about_pods.hold is Hold.RETRY
    assert settings.about_pods.other_schedulers is OtherSchedulers.ALLOW


@pytest.mark.parametrize(
    "flag",
    [
        "--listen-address=9443",
        "--listen-address=:0",
        "--listen-address=:65536",
        "--listen-address=host:https",
        "--scheduler-names=",
        "--scheduler-names= ,",
        "--hold=Maybe",
        "--other-schedulers=Some",
        "--queue-label=",
        "--log-level=LOUD",
        "--unknown",
    ],
)
def test_flags_that_make_no_sense_end_it(flag: str) -> None:
    with pytest.raises(SystemExit):
        parse_settings([flag], {})


def test_the_deployment_and_the_service_agree_with_the_defaults() -> None:
    (deployment,) = (
        o for o in objects_of_kind("Deployment") if o["metadata"]["name"] == "moorage-webhook"
    )
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (volume,) = pod["volumes"]
    (mount,) = container["volumeMounts"]

    settings = parse_settings(container["args"], {})

    assert container["command"] == ["moorage-webhook"]
    assert settings == parse_settings([], {})
    assert container["ports"][0]["containerPort"] == settings.listen_address[1]
    assert settings.certificate.parent == Path(mount["mountPath"])
    assert volume["secret"]["secretName"] == "moorage-webhook-tls"
