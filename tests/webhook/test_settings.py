"""Command lines, those of the manifests included."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from kube.live_tls import TlsFiles
from tests.deploy.documents import objects_of_kind
from webhook.certificates.rotation import OwnCa
from webhook.rules.rule_context import Hold, OtherSchedulers, PodSettings
from webhook.settings import parse_settings

FILES = ("--tls-cert-file=/c", "--tls-private-key-file=/k")


def test_defaults() -> None:
    settings = parse_settings([], {})

    assert settings.listen_address == ("", 9443)
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


def test_drivers_that_policies_guard() -> None:
    settings = parse_settings(["--accounted-drivers=moorage.dev,gpu.example.com"], {})

    assert settings.accounting.accounted_drivers == ("moorage.dev", "gpu.example.com")
    assert parse_settings([], {}).accounting.accounted_drivers == ("moorage.dev",)


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
        "--tls-secret=alone",
        "--tls-secret=a/b/c",
        "--tls-secret=/b",
        "--tls-names= ,",
        "--tls-names=kälte.example",
        "--certificate-days=0",
        "--certificate-days=nan",
        "--certificate-days=ninety",
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

    settings = parse_settings(container["args"], {})

    assert container["command"] == ["moorage-webhook"]
    assert settings == parse_settings([], {})
    assert container["ports"][0]["containerPort"] == settings.listen_address[1]
    assert "volumes" not in pod


def test_its_own_ca_unless_it_is_told_of_files() -> None:
    own = parse_settings([], {}).certificate

    assert isinstance(own, OwnCa)
    assert (own.namespace, own.secret) == ("moorage-system", "moorage-webhook-tls")
    assert own.registration == "moorage"
    assert own.names == {"moorage-webhook.moorage-system.svc"}
    assert own.life == timedelta(days=90)
    assert parse_settings(list(FILES), {}).certificate == TlsFiles(Path("/c"), Path("/k"))


def test_what_is_told_of_its_own_ca() -> None:
    flags = ("--tls-secret=here/there", "--certificate-days=0.5", "--webhook-configuration=other")

    own = parse_settings([*flags], {}).certificate
    named = parse_settings([*flags, "--tls-names=A.example, ::0001,10.0.0.1"], {}).certificate

    assert own == OwnCa(
        "here",
        "there",
        "other",
        frozenset({"moorage-webhook.here.svc"}),
        timedelta(hours=12),
    )
    assert isinstance(named, OwnCa)
    assert named.names == {"a.example", "::1", "10.0.0.1"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (FILES[:1], "--tls-private-key-file must be given too"),
        (FILES[1:], "--tls-cert-file must be given too"),
        ((*FILES, "--tls-secret=a/b"), "--tls-secret is for the webhook's own CA"),
        ((*FILES, "--certificate-days=9"), "--certificate-days is for the webhook's own CA"),
    ],
)
def test_files_and_its_own_ca_exclude_each_other(
    flags: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse_settings(flags, {})

    assert said in capsys.readouterr().err
