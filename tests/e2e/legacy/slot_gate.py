"""An admission webhook of the tests that holds what one node's driver writes about slots.

A write that is held there was sent by its author, who waits for the answer: the moment at which to
kill him, or to let another node be first.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from local_cluster.api import Cluster
from tests.e2e.listeners import listening

TIMEOUT_SECONDS = 30
DRIVER = "system:serviceaccount:moorage-system:driver-node"


class SlotGate:
    """Holds each write of slots that the webhook sees, until the test lets it pass."""

    def __init__(self) -> None:
        self._arrived = threading.Event()
        self._open = threading.Event()
        self._probed = threading.Event()

    @property
    def holds(self) -> bool:
        """Whether a write has arrived."""
        return self._arrived.is_set()

    @property
    def is_in_force(self) -> bool:
        return self._probed.is_set()

    def let_pass(self) -> None:
        """The writes that are held, and those that follow."""
        self._open.set()

    def answer(self, _: str, review: dict[str, Any]) -> dict[str, Any]:
        request = review["request"]
        if request.get("dryRun"):
            self._probed.set()
        else:
            self._arrived.set()
            self._open.wait(TIMEOUT_SECONDS)
        return {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": {"uid": request["uid"], "allowed": True},
        }


@contextmanager
def slots_held(cluster: Cluster, namespace: str, instance: str, node: str) -> Iterator[SlotGate]:
    """A gate for what the driver of `node` writes to an Instance's slots.

    It is in force when this begins: the API server learns of webhooks late.
    """
    gate = SlotGate()
    certificate = cluster.issue_certificate("slot-gate")
    with listening(cluster.host_address, gate.answer, certificate) as url:
        name = f"slots.{namespace}.moorage.test"
        ca = base64.b64encode(certificate.ca.read_bytes()).decode()
        cluster.apply(_configuration(name, {"url": url, "caBundle": ca}, namespace, node))
        try:
            cluster.wait_until(
                "the gate is in force", lambda: _is_in_force(cluster, namespace, instance, gate)
            )
            yield gate
        finally:
            gate.let_pass()
            cluster.kubectl("delete", "validatingwebhookconfiguration", name)


def _is_in_force(cluster: Cluster, namespace: str, instance: str, gate: SlotGate) -> bool:
    """Whether it sees a change that is only tried."""
    cluster.kubectl("annotate", "akrii", instance, "probe=yes", "--dry-run=server", "-n", namespace)
    return gate.is_in_force


def _configuration(name: str, client: dict[str, str], namespace: str, node: str) -> dict[str, Any]:
    of_driver = (
        f"request.userInfo.username == '{DRIVER}'"
        " && request.userInfo.?extra[?'authentication.kubernetes.io/node-name'][?0].orValue('')"
        f" == '{node}'"
        " && object.spec.?deviceUsage != oldObject.spec.?deviceUsage"
    )
    when = f"request.?dryRun.orValue(false) || ({of_driver})"
    rule = {"apiGroups": ["akri.sh"], "apiVersions": ["v0"], "resources": ["instances"]}
    webhook = {
        "name": name,
        "clientConfig": client,
        "rules": [{**rule, "operations": ["UPDATE"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "matchConditions": [{"name": "is-meant", "expression": when}],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": TIMEOUT_SECONDS,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook],
    }
