"""What kube-scheduler says of the pods that it has not placed."""

from __future__ import annotations

import re
import ssl
from urllib.request import urlopen

from local_cluster.addresses import MOORAGE_SCHEDULER_PORT
from local_cluster.api import Cluster

PENDING = re.compile(r'^scheduler_pending_pods\{queue="(\w+)"\} (\d+)$', re.MULTILINE)
SECONDS = 30.0


def has_given_up(cluster: Cluster, pods: int) -> bool:
    """So many pods wait for a change, and none is to be tried again without one.

    It tries a pod again by itself where something happened while it was judged.
    """
    waiting = {queue: int(count) for queue, count in PENDING.findall(_metrics(cluster))}
    return (waiting["active"], waiting["backoff"]) == (0, 0) and waiting["unschedulable"] >= pods


def _metrics(cluster: Cluster) -> str:
    url = f"https://{cluster.address}:{MOORAGE_SCHEDULER_PORT}/metrics"
    with urlopen(url, timeout=SECONDS, context=_as_administrator(cluster)) as answer:
        return str(answer.read().decode())


def _as_administrator(cluster: Cluster) -> ssl.SSLContext:
    """It serves with a certificate that it made for itself."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    pki = cluster.work_dir / "pki"
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    return context
