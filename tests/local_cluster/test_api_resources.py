"""Kinds are found by the names that kubectl takes."""

from __future__ import annotations

from typing import Any

from local_cluster import api_resources
from local_cluster.apiserver import ApiServer


class FakeDiscovery(ApiServer):
    """Serves pods, events of two groups, and a kind in two versions."""

    def __init__(self) -> None:
        """It needs no connection."""

    def request(self, method: str, path: str, value: Any = None, **_: str) -> Any:
        if path == "/api":
            return {"items": [group("", v1=[kind("pods", "Pod", "po"), kind("events", "Event")])]}
        slices = kind("resourceslices", "ResourceSlice", scope="Cluster")
        events = group("events.k8s.io", v1=[kind("events", "Event", "ev")])
        return {"items": [events, group("resource.k8s.io", v1=[slices], v1beta1=[slices])]}


def group(name: str, **versions: list[dict[str, Any]]) -> dict[str, Any]:
    found = [{"version": version, "resources": kinds} for version, kinds in versions.items()]
    return {"metadata": {"name": name} if name else {}, "versions": found}


def kind(plural: str, name: str, *short: str, scope: str = "Namespaced") -> dict[str, Any]:
    said = {"resource": plural, "singularResource": name.lower(), "shortNames": list(short)}
    return {**said, "responseKind": {"kind": name}, "scope": scope}


SERVED = api_resources.served(FakeDiscovery())


def test_a_kind_has_several_names() -> None:
    paths = {SERVED[name].path("lab", "a") for name in ("pod", "pods", "po")}
    assert paths == {"/api/v1/namespaces/lab/pods/a"}


def test_the_first_group_has_a_name_and_others_say_theirs() -> None:
    assert SERVED["events"].path(None) == "/api/v1/events"
    assert SERVED["events.events.k8s.io"].path(None) == "/apis/events.k8s.io/v1/events"


def test_the_preferred_version_is_read_and_a_cluster_has_no_namespace() -> None:
    assert SERVED["resourceslice"].path("lab") == "/apis/resource.k8s.io/v1/resourceslices"


def test_a_selector_is_put_into_words_that_a_path_may_have() -> None:
    assert (
        SERVED["po"].path(None, labelSelector="a in (b)")
        == "/api/v1/pods?labelSelector=a+in+%28b%29"
    )


def test_objects_of_a_list_say_what_they_are() -> None:
    item = {"metadata": {"name": "a", "managedFields": [{}]}}
    found = api_resources.listed({"apiVersion": "v1", "kind": "PodList", "items": [item]})
    assert found == [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}]
