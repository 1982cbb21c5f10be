"""The manifests and the registration, as the API server takes them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from local_cluster.api import Cluster
from tests.deploy.documents import MANIFESTS
from tests.e2e.webhook.installation import (
    MUTATING_TEMPLATE,
    NAMESPACE,
    TEMPLATE,
    WebhookProcess,
    install,
    wait_configurations_known,
)
from tests.e2e.webhook.objects import the_world, warnings_of
from tests.e2e.webhook.registrations import registration

STRICTLY = ("create", "--dry-run=server", "--validate=strict", "-f", "-")


def test_the_api_server_takes_the_manifests_as_they_are(server: Cluster) -> None:
    paths = sorted(MANIFESTS.glob("webhook-*.yaml"))

    for path in paths:
        apply = ("apply", "--dry-run=server", "--validate=strict", "-f", str(path))
        assert warnings_of(server, *apply) == "", path
    assert len(paths) == 9


@pytest.mark.parametrize("template", [TEMPLATE, MUTATING_TEMPLATE], ids=lambda path: path.stem)
def test_the_api_server_takes_the_registration_once_it_is_filled_in(
    server: Cluster, webhook: WebhookProcess, template: Path
) -> None:
    filled = registration(yaml.safe_load(template.read_text()), webhook.certificate.ca.read_bytes())
    filled["metadata"] = {**filled["metadata"], "name": "another"}

    assert warnings_of(server, *STRICTLY, body=filled) == ""


def test_the_account_may_read_and_nothing_else(server: Cluster) -> None:
    account = f"--as=system:serviceaccount:{NAMESPACE}:webhook"
    reads = (" [get list watch]", " [list watch]")
    # From Kubernetes 1.37 on every account may read ClusterTrustBundles.
    of_all = granted(server, "--as=system:serviceaccount:default:default")
    about_objects = [line for line in granted(server, account) - of_all if line.endswith(reads)]

    writes = ("create", "update", "patch", "delete")
    for resource in ("queues", "resourceclaims", "pods", "secrets", "deviceclasses"):
        for verb in writes:
            answer = server.kubectl("auth", "can-i", verb, resource, account, check=False)
            assert answer.stdout.strip() == "no", (verb, resource)
    assert len(about_objects) == 7


def granted(server: Cluster, account: str) -> set[str]:
    """Lines of resource, URL, names and verbs, with one space between them."""
    told = server.kubectl("auth", "can-i", "--list", "--no-headers", account).stdout
    return {" ".join(line.split()) for line in told.splitlines()}


@pytest.mark.usefixtures("asked")
def test_kinds_that_are_not_installed_keep_it_from_nothing(server: Cluster) -> None:
    """Nor do claims on clusters without Dynamic Resource Allocation: those stores stay empty."""
    kinds = ("configurations.akri.sh", "instances.akri.sh")
    server.kubectl("delete", "crd", *kinds)
    process = WebhookProcess(server)
    process.start()
    try:
        process.wait_ready()
    finally:
        process.kill()
        install(server)
        server.apply({"apiVersion": "v1", "kind": "List", "items": the_world()})
    wait_configurations_known(server)
    for kind in ("configurations", "instances"):
        assert f"not served here: /apis/akri.sh/v0/{kind}" in process.log.read_text()
