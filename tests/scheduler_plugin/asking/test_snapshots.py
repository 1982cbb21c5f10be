"""A snapshot: the same world again, nothing secret in it, and no other version's."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scheduler_plugin.asking.books import books_of
from scheduler_plugin.asking.shapes import shapes
from scheduler_plugin.asking.snapshots import (
    Snapshot,
    SnapshotError,
    document,
    kept,
    read_document,
)
from scheduler_plugin.asking.worlds import world_of
from scheduler_plugin.objects.names import (
    QUEUE_LABEL,
    AccountingSettings,
    OrphanPolicy,
    QueueName,
)
from scheduler_plugin.viewing.device_rows import device_rows
from scheduler_plugin.viewing.queue_rows import charge_rows, claim_rows, queue_rows
from scheduler_plugin.viewing.why import why
from tests.fakes.taint_rules import a_rule_object
from tests.scheduler_plugin.builders import (
    a_claim_object,
    a_class_object,
    a_pod_object,
    a_queue_object,
    a_request,
    a_result,
    pod_uid,
)

SECRET = "hunter2-canary"


def a_slice_object(*devices: dict[str, Any], **spec: Any) -> dict[str, Any]:
    pool = {"name": "onvif", "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": "s"},
        "spec": {"driver": "moorage.dev", "pool": pool, "devices": list(devices), **spec},
    }


def a_device(name: str = "onvif-aaaaaa", **more: Any) -> dict[str, Any]:
    attributes = {"configuration": {"string": "onvif"}, "instance": {"string": "onvif-aaaaaa"}}
    return {"name": name, "attributes": attributes, **more}


def an_instance(name: str = "onvif-aaaaaa", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "default", "name": name},
        "spec": {"configurationName": "onvif", "capacity": 2, "nodes": ["n"], **spec},
    }


def a_configuration(**status: Any) -> dict[str, Any]:
    accepted = {"type": "Accepted", "status": "True", "reason": "Valid", "message": "Yes."}
    return {
        "metadata": {"namespace": "default", "name": "onvif"},
        "spec": {"discoveryHandler": {"name": "onvif"}, "capacity": 2},
        "status": {"conditions": [accepted], **status},
    }


def a_group_object() -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "metadata": {"namespace": "default", "name": "train", "uid": "uid-of-train"},
        "spec": {"schedulingPolicy": {"basic": {}}, "workloadRef": {"name": SECRET}},
    }


def raw() -> dict[str, list[dict[str, Any]]]:
    """Objects as the API server returns them, with what nobody may learn everywhere."""
    pod = a_pod_object("a", queue="vision", claims=("cam",), node="n", phase="Running")
    waiting = a_pod_object("b", queue="vision", claims=("more",))
    for one in (pod, waiting):
        one["spec"]["containers"][0] |= {
            "env": [{"name": "TOKEN", "value": SECRET}],
            "command": ["run", f"--password={SECRET}"],
        }
        one["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied"] = SECRET
        one["metadata"]["labels"]["app"] = SECRET
        one["spec"]["volumes"] = [{"secret": {"secretName": SECRET}}]
        one["status"]["conditions"] = [{"type": "Ready", "status": "True", "message": SECRET}]
    claim = a_claim_object("cam", queue="vision", results=[a_result()], pods=["a"])
    claim["spec"]["devices"]["config"] = [{"opaque": {"parameters": {"env": {"T": SECRET}}}}]
    claim["status"]["allocation"]["devices"]["config"] = [{"opaque": {"parameters": SECRET}}]
    claim["status"]["devices"] = [{"data": SECRET}]
    made = a_class_object("onvif", configuration="onvif", spec={"config": [{"opaque": SECRET}]})
    made["metadata"]["annotations"]["a"] = SECRET
    device = a_device()
    device["attributes"]["serial"] = {"string": SECRET}
    configuration = a_configuration(nodes=[{"name": "n", "handler": "Offline", "message": SECRET}])
    configuration["spec"]["discoveryHandler"] |= {
        "discoveryDetails": SECRET,
        "discoveryProperties": [{"name": "p", "value": SECRET}],
    }
    configuration["spec"]["brokerProperties"] = {"K": SECRET}
    template = {
        "metadata": {"namespace": "default", "name": "t", "annotations": {"a": SECRET}},
        "spec": {"metadata": {"labels": {"x": SECRET}}, "spec": claim["spec"]},
    }
    return {
        "pods": [pod, waiting],
        "resourceclaims": [claim, a_claim_object("more", requests=[a_request()])],
        "resourceclaimtemplates": [template],
        "deviceclasses": [made],
        "resourceslices": [a_slice_object(device, nodeName="n")],
        "namespaces": [{"metadata": {"name": "default", "annotations": {"a": SECRET}}}],
        "queues": [a_queue_object("vision", onvif=(1, 1))],
        "configurations": [configuration],
        "instances": [an_instance(brokerProperties={"PASSWORD": SECRET})],
        "devicetaintrules": [a_rule_object(device="onvif-aaaaaa")],
        "podgroups": [a_group_object()],
        "priorityclasses": [],
    }


def a_snapshot(**settings: Any) -> Snapshot:
    return Snapshot(
        taken_at="2026-11-22T00:00:00Z",
        settings=AccountingSettings(**settings),
        objects={kind: tuple(kept(kind, objs, QUEUE_LABEL)) for kind, objs in raw().items()},
        driver_nodes=("n",),
    )


def written(snapshot: Snapshot) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(document(snapshot, "0.1.0")))
    return found


def test_a_claim_that_is_reserved_for_a_podgroup_is_used_by_its_pods() -> None:
    pod = a_pod_object("a", queue="vision", claims=("cam",), node="n", group="train")
    claim = a_claim_object("cam", queue="vision", results=[a_result()], groups=["train"])
    objects = {**raw(), "pods": [pod], "resourceclaims": [claim]}
    pruned = {kind: tuple(kept(kind, objs, QUEUE_LABEL)) for kind, objs in objects.items()}

    books = books_of(replace(a_snapshot(), objects=pruned))

    found = books.facts.claim_named("default", "cam")
    assert found is not None
    assert (found.reserved_for, found.unknown_groups) == ((pod_uid("a"),), ())


def test_nothing_secret_is_in_the_file() -> None:
    before = json.dumps(raw()).count(SECRET)

    assert before > 20
    assert json.dumps(written(a_snapshot())).count(SECRET) == 0


def test_the_world_of_a_file_is_that_of_the_cluster() -> None:
    settings = {"default_queue": QueueName("vision"), "orphan_policy": OrphanPolicy.UNATTRIBUTED}
    snapshot = a_snapshot(**settings)
    again = read_document(written(snapshot))

    assert again.settings == snapshot.settings
    assert again.driver_nodes == ("n",)
    one, other = world_of(snapshot), world_of(again)
    assert tuple(queue_rows(one)) == tuple(queue_rows(other)) != ()
    assert tuple(claim_rows(one)) == tuple(claim_rows(other)) != ()
    assert tuple(charge_rows(one, QueueName("vision"))) != ()
    assert why(one, "default", "b") == why(other, "default", "b")
    reason = why(other, "default", "b")
    assert reason is not None
    assert reason.reason == "OverLimit"
    rows = [
        device_rows(s.of("resourceslices"), s.of("instances"), s.of("resourceclaims"), world_of(s))
        for s in (snapshot, again)
    ]
    assert rows[0] == rows[1] != []


def test_all_that_the_world_reads_is_kept() -> None:
    whole = Snapshot(
        taken_at="", settings=AccountingSettings(), objects={k: tuple(v) for k, v in raw().items()}
    )
    one, other = world_of(whole), world_of(a_snapshot())

    assert tuple(one.facts.pods()) == tuple(other.facts.pods())
    assert tuple(one.facts.claims()) == tuple(other.facts.claims())
    assert set(shapes(QUEUE_LABEL)) == set(raw())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "Pod"}, "not a snapshot of Moorage"),
        (
            {"format": 2, "moorage": "9.0"},
            "the snapshot has format 2 of Moorage 9.0",
        ),
        ({"settings": {"max_consumers": "many"}}, "damaged"),
        ({"settings": None}, "damaged"),
        ({"objects": 3}, "damaged"),
        ({"objects": {"pods": [{"metadata": {}}]}}, "damaged"),
        ({"objects": {"pods": [3]}}, "damaged"),
        ({"driverNodes": None}, "damaged"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_in_a_sentence(
    change: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SnapshotError, match=sentence):
        read_document({**written(a_snapshot()), **change})


@pytest.mark.parametrize("words", [("claims",), ("charge", "vision"), ("devices", "-o", "wide")])
def test_no_table_of_a_snapshot_is_cut_where_nobody_looks(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    """A line is as long as what it tells: whoever reads from a pipe looks for whole names."""
    objects = raw()
    pods = [f"{'long-name-' * 5}{number}" for number in range(4)]
    objects["pods"] = [a_pod_object(n, queue="vision", claims=("cam",), node="n") for n in pods]
    objects["resourceclaims"][0] = a_claim_object(
        "cam", queue="vision", results=[a_result()], pods=pods
    )
    found = {kind: tuple(kept(kind, objs, QUEUE_LABEL)) for kind, objs in objects.items()}
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(written(replace(a_snapshot(), objects=found))))

    run = "import sys; from scheduler_plugin.kubectl.commands import main; sys.exit(main())"
    command = (sys.executable, "-c", run, *words, f"--snapshot={file}")
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)

    (line,) = (line for line in done.stdout.splitlines() if "cam" in line and pods[0] in line)
    assert all(f"default/{pod}" in line for pod in pods)


def test_what_is_no_object_is_no_snapshot() -> None:
    with pytest.raises(SnapshotError):
        read_document([])


def test_an_object_that_cannot_be_read_is_absent() -> None:
    objects = copy.deepcopy(raw())
    objects["resourceclaims"][0]["status"]["allocation"]["devices"]["results"] = "many"
    snapshot = Snapshot(
        taken_at="",
        settings=AccountingSettings(),
        objects={k: tuple(v) for k, v in objects.items()},
    )

    assert [claim.name for claim in world_of(snapshot).facts.claims()] == ["more"]
