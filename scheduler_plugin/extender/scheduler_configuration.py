"""The part of kube-scheduler's configuration that makes it call this plugin.

The administrator adds all else that the scheduler needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler_plugin.extender.listening import Listening

HTTP_TIMEOUT = "10s"

CLIENT_CONNECTION = {"qps": 200, "burst": 400}
"""kube-scheduler writes each claim and reads or writes each pod. With its default of 50 requests a
second, many small pods would wait for the client's rate limit."""


LEASE_TIMES = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "500ms"}
"""kube-scheduler's defaults, but for `retryPeriod`. A standby reads the Lease every 1 to 2.2 times
`retryPeriod`: once to see the last renewal, and once to see that none followed. The default of 2 s
may add nine seconds to the Lease's duration when the leader dies."""


PERCENTAGE_OF_NODES_TO_SCORE = 100
"""kube-scheduler looks at all nodes for each pod. By default it stops when it has found enough, and
writes their number into the condition of a refused pod. The number differs from try to try, so the
condition is written each time, and each write requeues the pod."""


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
        caller: The certificate files of kube-scheduler; None without TLS.
        scheduler_kubeconfig: kube-scheduler's kubeconfig; "" for the ServiceAccount of its pod.
    """

    listening: Listening
    lease: tuple[str, str]
    scheduler_names: Sequence[str]
    caller: CallerFiles | None = None
    scheduler_kubeconfig: str = ""


def scheduler_configuration(settings: PrintConfigSettings) -> dict[str, Any]:
    """A KubeSchedulerConfiguration.

    Leader election is on, since the plugin serves the kube-scheduler that holds the Lease.
    The extender is called for every pod, and is not `ignorable`: a pod that is bound without it
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


def why_not_called(configuration: object, *, plain_http: bool) -> str:
    """Why a kube-scheduler with this configuration would not reach the plugin; "" if it would.

    No pod of the cluster would be scheduled then.
    """
    found = configuration.get("extenders") if isinstance(configuration, Mapping) else None
    urls = [str(one.get("urlPrefix", "")) for one in found or () if isinstance(one, Mapping)]
    scheme = "http" if plain_http else "https"
    if any(url.startswith(f"{scheme}://") for url in urls):
        return ""
    mend = "--plain-http here, or certificates there (print-config --certificates)"
    return f"no extender has a urlPrefix of {scheme}: both sides need the same, {mend}"


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
    """The plugin's address as kube-scheduler beside it calls it; a wildcard becomes loopback."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listening.host, listening.host)
    return f"[{host}]:{listening.port}" if ":" in host else f"{host}:{listening.port}"
