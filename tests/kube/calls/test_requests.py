"""Verbs of the API, and the HTTP requests that they become."""

from __future__ import annotations

import pytest

from kube.calls import requests
from kube.calls.requests import NO_PRECONDITIONS, WRITE, Preconditions, WriteOptions
from kube.kinds import CLAIMS, CONFIG_MAPS, NODES
from kube.resources import Resource


def test_paths_follow_group_namespace_and_subresource() -> None:
    assert NODES.at("n").url_path == "/api/v1/nodes/n"
    assert CLAIMS.at("c", "ns", "status").url_path == (
        "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c/status"
    )
    assert CLAIMS.select().url_path == "/apis/resource.k8s.io/v1/resourceclaims"
    assert CLAIMS.select("ns").url_path == "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims"
    assert CLAIMS.api_version == "resource.k8s.io/v1"
    assert NODES.api_version == "v1"


def test_names_cannot_leave_their_place_in_a_path() -> None:
    assert NODES.at("../a b").url_path == "/api/v1/nodes/..%2Fa%20b"


@pytest.mark.parametrize(("resource", "namespace"), [(CONFIG_MAPS, ""), (NODES, "ns")])
def test_namespace_must_fit_the_scope(resource: Resource, namespace: str) -> None:
    with pytest.raises(ValueError, match="namespace is"):
        resource.at("a", namespace)


def test_pages_carry_selectors_limit_and_token() -> None:
    selection = CONFIG_MAPS.select("ns", label_selector="a in (b)", field_selector="x=y")

    request = requests.list_page(selection, 5, "next", 1)

    assert request.query == {
        "labelSelector": "a in (b)",
        "fieldSelector": "x=y",
        "limit": "5",
        "continue": "next",
    }


def test_watch_starts_from_a_version_and_wants_bookmarks() -> None:
    request = requests.watch(NODES.select(), 7, 300, 100)

    assert request.query == {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": "7",
        "timeoutSeconds": "300",
    }


def test_create_goes_to_the_collection_or_under_the_named_object() -> None:
    body = {"metadata": {"name": "p", "namespace": "ns"}}

    create = requests.create(CONFIG_MAPS, body, "", WRITE)
    bind = requests.create(CONFIG_MAPS, body, "binding", WRITE)

    assert create.what == "POST /api/v1/namespaces/ns/configmaps"
    assert bind.what == "POST /api/v1/namespaces/ns/configmaps/p/binding"


def test_options_become_query_parameters() -> None:
    options = WriteOptions(field_manager="me", dry_run=True, timeout_seconds=1.5)

    request = requests.replace(NODES.at("n"), {}, options)

    assert request.timeout_seconds == 1.5
    assert request.query == {
        "fieldManager": "me",
        "dryRun": "All",
        "timeout": "1500ms",
    }


def test_preconditions_of_a_patch_stand_in_its_metadata() -> None:
    patch = {"metadata": {"labels": {"a": "b"}}, "spec": {}}

    request = requests.patch(
        NODES.at("n"), patch, requests.MERGE_PATCH, Preconditions("u", 7), WRITE
    )

    metadata = {"labels": {"a": "b"}, "uid": "u", "resourceVersion": "7"}
    assert request.body == {"metadata": metadata, "spec": {}}
    assert patch == {"metadata": {"labels": {"a": "b"}}, "spec": {}}


def test_a_strategic_merge_patch_carries_its_preconditions_too() -> None:
    patch = {"status": {"conditions": [{"$patch": "delete", "type": "a"}]}}

    kind = requests.STRATEGIC_MERGE_PATCH
    request = requests.patch(NODES.at("n"), patch, kind, Preconditions("u"), WRITE)

    assert request.method == "PATCH"
    assert request.content_type == "application/strategic-merge-patch+json"
    assert request.body == {**patch, "metadata": {"uid": "u"}}


def test_preconditions_of_a_deletion_stand_in_its_options() -> None:
    how = requests.Deletion(Preconditions("u"), 0, in_background=True)
    request = requests.delete(NODES.at("n"), how, WRITE)

    assert request.body["preconditions"] == {"uid": "u"}
    assert request.body["gracePeriodSeconds"] == 0
    assert request.body["propagationPolicy"] == "Background"
    bare = requests.delete(NODES.at("n"), requests.Deletion(), WRITE)
    assert bare.body == {"apiVersion": "v1", "kind": "DeleteOptions"}


def test_apply_needs_a_field_manager_and_can_be_forced() -> None:
    options = WriteOptions(field_manager="me")

    request = requests.apply(NODES.at("n"), {}, True, NO_PRECONDITIONS, options)

    assert request.content_type == "application/apply-patch+yaml"
    assert request.query["force"] == "true"
    with pytest.raises(ValueError, match="field manager"):
        requests.apply(NODES.at("n"), {}, False, NO_PRECONDITIONS, WRITE)
