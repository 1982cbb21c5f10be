"""What kube-scheduler's configuration must say so that it asks this plugin.

It is the part that belongs to the plugin: an administrator adds what else his scheduler needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler_plugin.extender.listening import Listening

HTTP_TIMEOUT = "10s"

CLIENT_CONNECTION = {"qps": 200, "burst": 400}
"""kube-scheduler writes each claim and reads or writes each pod: with its own default, 50 requests
a second, a queue of small pods waits for the client and not for the cluster."""


LEASE_TIMES = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "500ms"}
"""kube-scheduler's own, but for the last. Who waits for the Lease looks at it every `retryPeriod`
to 2.2 times that: once to see the last renewal, and once to see that nothing followed. With its own
2 s that may add nine seconds to the Lease's duration when the leader dies."""


PERCENTAGE_OF_NODES_TO_SCORE = 100
"""kube-scheduler looks at all nodes for each pod. Else it stops when it has found enough, and says
of a refused pod how many it had stopped at: a number that differs from try to try, so that the
pod's condition is written each time, which wakes it for the next try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerFiles:
    """Paths of PEM files as kube-scheduler sees them.

    Attributes:
        server_ca: The authority of the plugin's certificate.
    """

    certificate: str
    key: str
    server_ca: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintConfigSettings:
    """Settings of `moorage-scheduler-plugin print-config`.

    Attributes:
        lease: Namespace and name.
        caller: What kube-scheduler shows to the plugin; None without TLS.
        scheduler_kubeconfig: kube-scheduler's; empty for the ServiceAccount of its pod.
    """

    listening: Listening
    lease: tuple[str, str]
    scheduler_names: Sequence[str]
    caller: CallerFiles | None = None
    scheduler_kubeconfig: str = ""


def scheduler_configuration(settings: PrintConfigSettings) -> dict[str, Any]:
    """A KubeSchedulerConfiguration.

    Leader election is on, since the plugin serves whoever holds the Lease.
    The extender is asked about every pod, and is not `ignorable`: a pod that is bound without it
    would not be charged. Without a kubeconfig kube-scheduler uses its pod's ServiceAccount.
    """
    namespace, lease_name = settings.lease
    kubeconfig = settings.scheduler_kubeconfig
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {
            **({"kubeconfig": kubeconfig} if kubeconfig else {}),
            **CLIENT_CONNECTION,
        },
        "leaderElection": {
            "leaderElect": True,
            "resourceNamespace": namespace,
            "resourceName": lease_name,
            **LEASE_TIMES,
        },
        "percentageOfNodesToScore": PERCENTAGE_OF_NODES_TO_SCORE,
        "profiles": [{"schedulerName": name} for name in settings.scheduler_names],
        "extenders": [_extender(settings.listening, settings.caller)],
    }


def why_not_asked(configuration: object, *, plain_http: bool) -> str:
    """Why this kube-scheduler would not reach a plugin that listens so; empty if it would.

    No pod of the cluster would be scheduled then.
    """
    found = configuration.get("extenders") if isinstance(configuration, Mapping) else None
    urls = [str(one.get("urlPrefix", "")) for one in found or () if isinstance(one, Mapping)]
    scheme = "http" if plain_http else "https"
    if any(url.startswith(f"{scheme}://") for url in urls):
        return ""
    mend = "--plain-http here, or certificates there (print-config --certificates)"
    return f"no extender is asked by {scheme}: both sides need the same, {mend}"


def _extender(listening: Listening, caller: CallerFiles | None) -> dict[str, Any]:
    scheme = "http" if caller is None else "https"
    extender: dict[str, Any] = {
        "urlPrefix": f"{scheme}://{_address(listening)}",
        "filterVerb": "filter",
        "preemptVerb": "preempt",
        "bindVerb": "bind",
        "nodeCacheCapable": True,
        "httpTimeout": HTTP_TIMEOUT,
    }
    if caller is not None:
        extender["enableHTTPS"] = True
        extender["tlsConfig"] = {
            "caFile": caller.server_ca,
            "certFile": caller.certificate,
            "keyFile": caller.key,
        }
    return extender


def _address(listening: Listening) -> str:
    """Where kube-scheduler, beside the plugin, finds it: a wildcard is no address to call."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listening.host, listening.host)
    return f"[{host}]:{listening.port}" if ":" in host else f"{host}:{listening.port}"
