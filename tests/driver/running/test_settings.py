"""Settings: flags, environment, and what is said of nonsense."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from driver.discovery.handlers import HANDLER_NAMES
from driver.discovery.reach import Reach, parse_networks
from driver.environment_rules import EnvironmentRules
from driver.handlers.report_limits import HandlerLimits
from driver.handlers.sdk_requests import TlsFiles
from driver.running.arguments import Address
from driver.running.node_settings import NodeSettings
from driver.running.settings import HandlerProcessSettings, SharedSettings, parse_settings


def test_the_environment_of_a_daemonset_is_enough() -> None:
    settings = parse_settings(["node"], {"NODE_NAME": "node-a", "POD_UID": "u"})

    assert isinstance(settings, NodeSettings)
    assert (settings.node_name, settings.pod_uid) == ("node-a", "u")
    assert settings.kubelet_root == Path("/var/lib/kubelet")
    assert settings.kubeconfig is None
    assert settings.unique_devices_default == "true"


def test_a_flag_wins_over_the_environment() -> None:
    argv = ["node", "--node-name=b", "--rescan-interval=5s", "--unique-devices-default=false"]
    argv += ["--rediscovery-interval=2s"]

    settings = parse_settings(argv, {"NODE_NAME": "a"})

    assert isinstance(settings, NodeSettings)
    assert settings.node_name == "b"
    assert settings.discovery.rescan_interval == timedelta(seconds=5)
    assert settings.discovery.rediscovery_interval == timedelta(seconds=2)
    assert settings.unique_devices_default == "false"


def test_the_shared_driver_is_named_after_its_pod() -> None:
    settings = parse_settings(["shared"], {"POD_NAME": "shared-0", "POD_NAMESPACE": "ns"})

    assert isinstance(settings, SharedSettings)
    assert settings.namespace == "ns"
    assert settings.holder.startswith("shared-0_")
    assert settings.lost_node_grace == timedelta(minutes=5)


def test_flags_for_trying_things_out() -> None:
    node = parse_settings(["node", "--node-name=a", "--debug-echo-file=/x/y"], {})
    shared = parse_settings(["shared", "--lost-node-grace=2s"], {})

    assert isinstance(node, NodeSettings)
    assert isinstance(shared, SharedSettings)
    assert node.discovery.debug_echo_file == Path("/x/y")
    assert shared.lost_node_grace == timedelta(seconds=2)


def test_handlers_run_in_the_driver_and_register_where_akris_do() -> None:
    usual = parse_settings(["node", "--node-name=a"], {})
    chosen = parse_settings(
        ["node", "--node-name=a", "--embedded-handlers=udev,", "--handler-registration-socket="],
        {"DEBUG_ECHO_INSTANCES_SHARED": "false"},
    )

    assert isinstance(usual, NodeSettings)
    assert isinstance(chosen, NodeSettings)
    assert usual.embedded_handlers >= {"debugEcho", "udev"}
    assert usual.handler_registration_socket == Path("/var/lib/akri/agent-registration.sock")
    assert usual.discovery.debug_echo_shared
    assert chosen.embedded_handlers == {"udev"}
    assert chosen.handler_registration_socket is None
    assert not chosen.discovery.debug_echo_shared


def test_metrics_are_told_where_the_flag_says() -> None:
    node = parse_settings(["node", "--node-name=a"], {})
    shared = parse_settings(["shared", "--metrics-address=127.0.0.1:9000"], {})
    silent = parse_settings(["shared", "--metrics-address="], {})

    assert isinstance(node, NodeSettings)
    assert isinstance(shared, SharedSettings)
    assert isinstance(silent, SharedSettings)
    assert node.metrics_address == Address(None, 8090)
    assert shared.metrics_address == Address("127.0.0.1", 9000)
    assert silent.metrics_address is None


def test_a_handler_is_where_akris_environment_says() -> None:
    inside = parse_settings(["handler", "udev"], {})
    outside = parse_settings(
        ["handler", "debugEcho"], {"DISCOVERY_HANDLERS_DIRECTORY": "/x", "POD_IP": "fd00::7"}
    )

    assert isinstance(inside, HandlerProcessSettings)
    assert isinstance(outside, HandlerProcessSettings)
    assert (inside.folder, inside.place.address) == (Path("/var/lib/akri"), None)
    assert (outside.folder, outside.place.address) == (Path("/x"), "[fd00::7]:10000")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["node", "--node-name=a", "--embedded-handlers=udev,x"], "no handler x; use"),
        (["handler", "x"], "no handler x; use"),
        ([], "COMMAND"),
        (["node"], "--node-name"),
        (["node", "--node-name="], "must not be empty"),
        (["node", "--node-name=a", "--rescan-interval=0"], "'0' is not a duration above 0"),
        (["shared", "--log-level=LOUD"], "LOUD"),
        (["shared", "--metrics-address=8090"], "'8090' is not <host>:<port>"),
    ],
)
def test_nonsense_is_refused_with_the_flag(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse_settings(argv, {})

    assert said in capsys.readouterr().err


def node_settings(*flags: str, **environ: str) -> NodeSettings:
    settings = parse_settings(["node", "--node-name=a", *flags], environ)
    assert isinstance(settings, NodeSettings)
    return settings


def test_handlers_of_other_processes_may_little_unless_flags_say_so() -> None:
    usual = node_settings().handler_limits
    flags = ["--handler-device-paths=/dev/video*, /dev/bus", "--handler-mount-paths=/srv"]
    flags += ["--handler-most-devices=7", "--node-most-devices=60"]
    flags += ["--network-handlers-folder=/var/lib/akri/network/"]
    chosen = node_settings(*flags).handler_limits

    assert usual == HandlerLimits(reserved=frozenset(HANDLER_NAMES))
    assert chosen.device_paths == ("/dev/video*", "/dev/bus")
    assert (chosen.mount_paths, chosen.most_devices) == (("/srv",), 7)
    assert (chosen.node_devices, chosen.network_folder) == (60, "/var/lib/akri/network")


def test_an_administrator_says_which_environment_is_denied() -> None:
    flags = ("--denied-environment=ACME_*, CAMERA_KEY", "--allowed-environment=HTTPS_PROXY")
    more = node_settings(*flags, "--network-handler-prefixes=ONVIF_,ACME_")

    assert node_settings().environment_rules == EnvironmentRules()
    assert more.environment_rules == EnvironmentRules(
        denied=("ACME_*", "CAMERA_KEY"),
        allowed=frozenset({"HTTPS_PROXY"}),
        network_prefixes=("ONVIF_", "ACME_"),
    )
    assert node_settings("--network-handler-prefixes=").environment_rules.network_prefixes == ()
    limits = node_settings("--network-handlers-folder=/var/lib/akri/network").handler_limits
    assert limits.network_folder == "/var/lib/akri/network"


def test_the_names_that_run_elsewhere_are_free_for_others() -> None:
    elsewhere = node_settings("--embedded-handlers=udev,debugEcho").handler_limits
    both = node_settings("--external-handlers=udev").handler_limits
    none = node_settings("--embedded-handlers=udev", "--external-handlers=").handler_limits

    assert elsewhere.reserved == {"udev", "debugEcho"}
    assert both.reserved == frozenset(HANDLER_NAMES) - {"udev"}
    assert none.reserved == frozenset(HANDLER_NAMES)


def test_certificates_are_named_by_flags_or_the_environment() -> None:
    flags = [f"--handler-tls-{part}=/{part}" for part in ("ca", "cert", "key")]
    environ = {f"HANDLER_TLS_{part}": f"/{part}" for part in ("CA", "CERT", "KEY")}
    handler = parse_settings(["handler", "onvif", "--tls-key=/other"], environ)

    assert node_settings().handler_tls is None
    assert node_settings(*flags).handler_tls == TlsFiles(Path("/ca"), Path("/cert"), Path("/key"))
    assert isinstance(handler, HandlerProcessSettings)
    assert handler.place.tls == TlsFiles(Path("/CA"), Path("/CERT"), Path("/other"))


def test_networks_that_strangers_may_tell_of_are_named() -> None:
    reach = node_settings("--discovery-networks=10.0.0.0/8", KUBERNETES_SERVICE_HOST="10.96.0.1")

    assert reach.discovery.reach == Reach(
        parse_networks("10.0.0.0/8"), parse_networks("10.96.0.0/12")
    )
    assert node_settings("--service-networks=fd00::/64").discovery.reach.services == parse_networks(
        "fd00::/64"
    )


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--handler-tls-ca=/ca"], "or none of them"),
        (["--handler-device-paths=dev"], "'dev' is not an absolute path"),
        (["--handler-mount-paths=/srv/../etc"], "is not an absolute path"),
        (["--handler-most-devices=0"], "not a whole number above 0"),
        (["--discovery-networks=10.0.0.1/8"], "has host bits set"),
        (["--denied-environment=A B"], "'A B' is not a pattern of variable names such as ACME_*"),
        (["--allowed-environment=LD_*"], "'LD_*' is not a variable name"),
        (["--allowed-environment=MOORAGE_X"], "'MOORAGE_X' is reserved for Moorage"),
        (["--network-handler-prefixes=1_"], "'1_' is not a prefix of a variable name"),
    ],
)
def test_limits_of_no_sense_are_refused(
    flags: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        node_settings(*flags)
    assert complaint in capsys.readouterr().err
