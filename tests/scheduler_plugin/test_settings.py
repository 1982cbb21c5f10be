"""Flags of the scheduler plugin, and what print-config makes of them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler_plugin import __main__
from scheduler_plugin.arguments import parse_settings
from scheduler_plugin.extender.listening import Listening, TlsFiles
from scheduler_plugin.extender.scheduler_configuration import (
    CallerFiles,
    PrintConfigSettings,
    scheduler_configuration,
)
from scheduler_plugin.objects.names import OrphanPolicy, OwnerLifetime
from scheduler_plugin.serve_settings import ServeSettings
from scheduler_plugin.settings import LeaveSettings
from tests.deploy.documents import DEPLOY

TLS = ("--tls-cert-file=t.crt", "--tls-private-key-file=t.key", "--client-ca-file=ca.crt")
CALLER = (
    "--scheduler-cert-file=/s/tls.crt",
    "--scheduler-private-key-file=/s/tls.key",
    "--server-ca-file=/s/ca.crt",
)


def serve(*argv: str, **environ: str) -> ServeSettings:
    settings = parse_settings(argv, environ)
    assert isinstance(settings, ServeSettings)
    return settings


def test_without_flags_it_serves_on_loopback_behind_the_lease_of_the_manifests() -> None:
    settings = serve()

    assert settings.listening == Listening(host="127.0.0.1", port=10261, tls=None)
    assert settings.pages == Listening(host="127.0.0.1", port=10262, tls=None)
    assert settings.accounting.scheduler_names == {"moorage"}
    assert str(settings.elected_by) == "moorage-system/moorage-scheduler"
    assert settings.elected_by.identity
    assert [kind.api_version for kind in settings.pod_groups] == [
        "scheduling.run.ai/v2alpha2",
        "scheduling.x-k8s.io/v1alpha1",
        "scheduling.k8s.io/",
    ]
    assert settings.kubeconfig is None


def test_flags_are_taken_over() -> None:
    settings = serve(
        "serve",
        "--kubeconfig=/k",
        "--lease=kube-system/other",
        "--scheduler-identity=host-a",
        "--queue-label=kai.scheduler/queue",
        "--default-queue=rest",
        "--non-preemptible-priority=-5",
        "--orphan-policy=Unattributed",
        "--owner-lifetime=Claim",
        "--accounted-drivers=moorage.dev,gpu.example.com",
        "--pod-groups=podgroups.v1.a.example,podgroups.v1beta1.b.example,podgroups.v1.a.example",
    )

    accounting = settings.accounting
    assert settings.kubeconfig == Path("/k")
    assert (str(settings.elected_by), settings.elected_by.identity) == (
        "kube-system/other",
        "host-a",
    )
    assert (accounting.queue_label, accounting.default_queue) == ("kai.scheduler/queue", "rest")
    assert accounting.non_preemptible_priority == -5
    assert accounting.orphan_policy is OrphanPolicy.UNATTRIBUTED
    assert accounting.owner_lifetime is OwnerLifetime.CLAIM
    assert accounting.accounted_drivers == ("moorage.dev", "gpu.example.com")
    assert [kind.api_version for kind in settings.pod_groups] == [
        "a.example/v1",
        "b.example/v1beta1",
    ]


def test_the_profiles_of_one_kube_scheduler_may_be_several() -> None:
    flag = "--scheduler-name=moorage, default-scheduler"

    assert serve(flag).accounting.scheduler_names == {"moorage", "default-scheduler"}
    assert print_config(flag)["profiles"] == [
        {"schedulerName": "moorage"},
        {"schedulerName": "default-scheduler"},
    ]


def test_with_tls_kube_scheduler_alone_is_heard_unless_others_are_named() -> None:
    for flags, names in (
        ((), {"system:kube-scheduler"}),
        (("--client-names=a,spiffe://b/c",), {"a", "spiffe://b/c"}),
    ):
        tls = serve(*TLS, *flags).listening.tls
        assert tls is not None
        assert tls.client_names == names


def test_environment_is_the_default() -> None:
    settings = serve(KUBECONFIG="/from/environment", POD_NAME="moorage-scheduler-1")

    assert settings.kubeconfig == Path("/from/environment")
    assert settings.instance == "moorage-scheduler-1"
    assert serve("--kubeconfig=/k", KUBECONFIG="/from/environment").kubeconfig == Path("/k")


def test_the_grace_of_left_overs_is_in_seconds() -> None:
    assert serve().leftover_grace == timedelta(minutes=2)
    assert serve("--leftover-grace", "1.5").leftover_grace == timedelta(seconds=1.5)


@pytest.mark.parametrize("text", ["0", "-1", "2m", "nan", "86401"])
def test_a_grace_that_makes_no_sense_is_refused(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        serve("--leftover-grace", text)

    assert "is not a number of seconds above 0 and up to 86400" in capsys.readouterr().err


def test_pod_groups_may_be_none() -> None:
    assert serve("--pod-groups=").pod_groups == ()


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("--lease=no-namespace", "'no-namespace' is not a Lease as namespace/name"),
        ("--lease=a/b/c", "'a/b/c' is not a Lease as namespace/name"),
        ("--scheduler-identity=", "must not be empty"),
        ("--queue-label=a/b/c", "'a/b/c' is not a label key such as moorage.dev/queue"),
        ("--queue-label=", "'' is not a label key"),
        ("--default-queue=Not_A_Name", "'Not_A_Name' is not a valid name of a Queue"),
        ("--non-preemptible-priority=high", "'high' is not a priority that a pod can have"),
        ("--non-preemptible-priority=9999999999", "is not a priority that a pod can have"),
        ("--orphan-policy=Nobody", "'Nobody' is not one of"),
        ("--owner-lifetime=Ever", "'Ever' is not one of"),
        ("--pod-groups=podgroups", "'podgroups' is not a plural.group or plural.version.group"),
        ("--pod-groups=podgroups.v1", "'podgroups.v1' is not a plural.group"),
        ("--pod-groups=podgroups.v1.a.example,", "'' is not a plural.group"),
        ("--listen-address=somewhere", '"somewhere" is not an IP address and a port'),
        ("--listen-address=0.0.0.0:1", "is not a loopback address and needs mutual TLS"),
        ("--tls-cert-file=t.crt", "TLS needs a certificate, key and client CA"),
        ("--pages-address=somewhere", '"somewhere" is not an IP address and a port'),
        ("--client-names=a,,b", "must not be empty"),
        ("--scheduler-name=", "must not be empty"),
        ("--log-level=LOUD", "'LOUD' is not one of"),
    ],
)
def test_value_that_makes_no_sense_is_refused_with_a_sentence(
    flag: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse_settings([flag], {})

    said = capsys.readouterr().err
    assert stopped.value.code == 2
    assert sentence in said
    assert flag.partition("=")[0].replace("--tls-cert-file", "--tls-private-key-file") in said


def print_config(*argv: str) -> dict[str, Any]:
    settings = parse_settings(["print-config", *argv], {})
    assert isinstance(settings, PrintConfigSettings)
    return scheduler_configuration(settings)


def test_printed_configuration_is_that_of_the_manifests() -> None:
    text = (DEPLOY / "manifests" / "scheduler-plugin-configmap.yaml").read_text()
    stored = yaml.safe_load(text)["data"]["config.yaml"]

    assert print_config() == yaml.safe_load(stored)


def test_printed_configuration_follows_the_flags() -> None:
    found = print_config("--lease=a/b", "--scheduler-name=mine", "--listen-address=[::1]:7")

    assert found["leaderElection"] == {
        "leaderElect": True,
        "resourceNamespace": "a",
        "resourceName": "b",
        "leaseDuration": "15s",
        "renewDeadline": "10s",
        "retryPeriod": "500ms",
    }
    assert found["profiles"] == [{"schedulerName": "mine"}]
    (extender,) = found["extenders"]
    assert extender["urlPrefix"] == "http://[::1]:7"
    assert "ignorable" not in extender
    assert "managedResources" not in extender


def test_what_kube_scheduler_says_of_a_refused_pod_has_no_number_that_changes() -> None:
    """It names how many nodes it stopped at, unless it looks at all of them."""
    assert print_config()["percentageOfNodesToScore"] == 100


def test_with_tls_kube_scheduler_is_told_what_to_show_and_whom_to_believe() -> None:
    (extender,) = print_config("--listen-address=0.0.0.0:10261", *TLS, *CALLER)["extenders"]

    assert extender["urlPrefix"] == "https://127.0.0.1:10261"
    assert extender["enableHTTPS"] is True
    assert extender["tlsConfig"] == {
        "caFile": "/s/ca.crt",
        "certFile": "/s/tls.crt",
        "keyFile": "/s/tls.key",
    }


def test_with_tls_print_config_refuses_to_leave_out_a_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without a CA, kube-scheduler would verify no certificate at all."""
    with pytest.raises(SystemExit):
        parse_settings(["print-config", *TLS, *CALLER[:2]], {})

    assert "print-config needs --scheduler-cert-file" in capsys.readouterr().err


def test_wildcard_of_ipv6_is_called_on_its_loopback() -> None:
    tls = TlsFiles(certificate="c", key="k", client_ca="a")
    settings = PrintConfigSettings(
        listening=Listening(host="::", port=1, tls=tls),
        lease=("a", "b"),
        scheduler_names=("moorage",),
        caller=CallerFiles(certificate="c", key="k", server_ca="a"),
    )

    assert scheduler_configuration(settings)["extenders"][0]["urlPrefix"] == "https://[::1]:1"


def test_command_prints_to_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["moorage-scheduler-plugin", "print-config"])

    assert __main__.main() == 0
    assert yaml.safe_load(capsys.readouterr().out)["kind"] == "KubeSchedulerConfiguration"


@pytest.mark.parametrize(("argv", "purge"), [([], False), (["--purge"], True)])
def test_leaving_purges_only_if_told_to(argv: list[str], purge: bool) -> None:
    settings = parse_settings(["leave", *argv], {})

    assert settings == LeaveSettings(kubeconfig=None, log_level="INFO", purge=purge)
