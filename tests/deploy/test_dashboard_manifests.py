"""The dashboard's manifests: an account that reads what the process reads, and writes nothing."""

from __future__ import annotations

from typing import Any

from scheduler_plugin.arguments import parse_settings
from scheduler_plugin.asking.apiserver_snapshots import NEEDED, OPTIONAL
from scheduler_plugin.dashboard_settings import DashboardSettings
from tests.deploy.documents import DASHBOARD, documents_in
from tests.e2e.rights import granted

NAMESPACE = "moorage-system"


DOCUMENTS = [document for found in documents_in(DASHBOARD).values() for document in found]


def of_kind(kind: str) -> list[Any]:
    return [document for document in DOCUMENTS if document["kind"] == kind]


def rights(account: str) -> set[tuple[str, str]]:
    """Each verb and resource.group that an account is granted here."""
    return {
        (right.verb, right.resource) for right in granted(DOCUMENTS) if right.account == account
    }


def settings() -> DashboardSettings:
    (deployment,) = of_kind("Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    found = parse_settings(container["command"][1:], {})
    assert isinstance(found, DashboardSettings)
    return found


def test_the_account_follows_all_that_the_process_follows() -> None:
    kinds = {f"{kind.plural}.{kind.group}".rstrip(".") for kind in (*NEEDED, *OPTIONAL)}

    assert rights("dashboard") >= {(verb, kind) for verb in ("list", "watch") for kind in kinds}


def test_the_account_stores_nothing() -> None:
    """Reviews are answers, and no objects."""
    written = {found for found in rights("dashboard") if found[0] not in ("get", "list", "watch")}

    assert written == {
        ("create", "tokenreviews.authentication.k8s.io"),
        ("create", "subjectaccessreviews.authorization.k8s.io"),
    }


def test_both_accounts_reach_one_secret_by_its_name() -> None:
    rules = [rule for role in of_kind("Role") for rule in role["rules"]]
    names = [rule["resourceNames"] for rule in rules if "secrets" in rule["resources"]]
    (secret,) = of_kind("Secret")

    assert names == [["moorage-dashboard-tls"]] * 2
    assert secret["metadata"]["name"] == "moorage-dashboard-tls"
    assert "data" not in secret, "another apply would take away what the plugin wrote"
    assert rights("scheduler-plugin") == {("get", "secrets"), ("patch", "secrets")}


def test_the_process_finds_what_the_manifests_name() -> None:
    found = settings()
    (service,) = of_kind("Service")
    (deployment,) = of_kind("Deployment")
    template = deployment["spec"]["template"]
    (port,) = template["spec"]["containers"][0]["ports"]
    (role,) = (o for o in of_kind("Role") if o["rules"][0]["resources"] == ["leases"])

    assert (found.lease_path.namespace, [found.lease_path.name]) == (
        role["metadata"]["namespace"],
        role["rules"][0]["resourceNames"],
    )
    assert (found.secret_path.namespace, found.secret_path.name) == (
        NAMESPACE,
        "moorage-dashboard-tls",
    )
    assert found.listen_address.address == ("", port["containerPort"])
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert (
        template["spec"]["serviceAccountName"] == of_kind("ServiceAccount")[0]["metadata"]["name"]
    )
