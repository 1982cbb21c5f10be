"""A snapshot has the results of selectors, and with them the charges of the cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube.cel import processes
from kube.cel.api import NotEvaluatedError
from scheduler_plugin.accounting.books import Books
from scheduler_plugin.asking import cel_processes
from scheduler_plugin.asking.books import books_of
from scheduler_plugin.asking.cel_processes import with_selected
from scheduler_plugin.asking.snapshots import Snapshot, changed, document, kept, read_document
from scheduler_plugin.asking.worlds import world_of
from scheduler_plugin.objects.names import QUEUE_LABEL, AccountingSettings, QueueName
from tests.scheduler_plugin.builders import (
    a_claim_object,
    a_class_object,
    a_pod_object,
    a_queue_object,
    a_request,
    a_result,
)

GPU = "gpu.example.com"
OF_MODEL = f"device.attributes['{GPU}'].model == "
H200 = {"name": "h200", "driver": GPU, "selector": f"{OF_MODEL}'H200'", "limit": 8}
GPUS = {"name": "gpus", "driver": GPU}


def objects(*entries: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    devices = [
        {"name": name, "attributes": {"model": {"string": model}}}
        for name, model in (("g0", "H200"), ("g1", "A100"))
    ]
    spec = {"driver": GPU, "pool": {"name": "a"}, "nodeName": "n", "devices": devices}
    claims = [
        a_claim_object(
            name,
            queue="vision",
            requests=[a_request("gpu")],
            results=[a_result(driver=GPU, pool="a", device=device)],
            pods=[name],
        )
        for name, device in (("large", "g0"), ("small", "g1"))
    ]
    selectors: Any = [{"cel": {"expression": f"{OF_MODEL}'A100'"}}]
    claims.append(a_claim_object("asked", requests=[a_request("gpu", selectors=selectors)]))
    of_driver = [{"cel": {"expression": f"device.driver == '{GPU}'"}}]
    return {
        "queues": [a_queue_object("vision", resources=[*(entries or (H200, GPUS))])],
        "resourceslices": [{"metadata": {"name": "s"}, "spec": spec}],
        "resourceclaims": claims,
        "deviceclasses": [a_class_object("gpu", spec={"selectors": of_driver})],
        "pods": [
            a_pod_object(name, queue="vision", claims=(name,), node="n")
            for name in ("large", "small")
        ],
        "namespaces": [{"metadata": {"name": "default"}}],
    }


def a_snapshot(found: dict[str, list[dict[str, Any]]], *, with_looks: bool) -> Snapshot:
    return Snapshot(
        taken_at="2026-11-28T00:00:00Z",
        settings=AccountingSettings(),
        objects={
            kind: tuple(kept(kind, each, QUEUE_LABEL, with_looks=with_looks))
            for kind, each in found.items()
        },
        with_looks=with_looks,
    )


def used(books: Books) -> dict[str, int]:
    usage = books.ledger.by_queue()[QueueName("vision")].usage
    return {str(key): amount for key, amount in usage}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "WAIT_SECONDS", 600.0)


def test_a_view_of_a_snapshot_charges_what_its_selectors_select() -> None:
    snapshot = with_selected(a_snapshot(objects(), with_looks=True))
    read = read_document(json.loads(json.dumps(document(snapshot, "0.2.0"))))

    assert used(books_of(snapshot)) == used(world_of(read)) == {"h200": 1, "gpus": 2}
    assert read.selected == snapshot.selected
    assert not world_of(read).facts.open_looks


def test_where_selectors_cannot_be_evaluated_a_note_says_that_each_device_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fails(_: object) -> list[Any]:
        raise NotEvaluatedError("no process")

    monkeypatch.setattr(cel_processes, "evaluate_all", fails)

    snapshot = with_selected(a_snapshot(objects(), with_looks=True))

    (note,) = snapshot.notes
    assert "no process" in note
    assert used(world_of(snapshot)) == {"h200": 2, "gpus": 2}


def test_what_is_changed_in_a_simulation_is_looked_at_as_well() -> None:
    snapshot = with_selected(a_snapshot(objects(), with_looks=True))
    selectors: Any = [{"cel": {"expression": f"{OF_MODEL}'B200'"}}]
    claim = a_claim_object("asked", requests=[a_request("gpu", selectors=selectors)])

    found = changed(snapshot, "resourceclaims", claim).of("resourceclaims")

    (request,) = next(c for c in found if c["metadata"]["name"] == "asked")["spec"]["devices"][
        "requests"
    ]
    assert request["exactly"]["selectors"] == selectors
    assert not world_of(changed(snapshot, "resourceclaims", claim)).facts.open_looks


def test_attributes_and_selectors_stay_in_the_cluster_where_no_entry_needs_them() -> None:
    snapshot = a_snapshot(objects({"deviceClass": "gpu"}), with_looks=False)

    written = json.dumps(document(snapshot, "0.2.0"))

    assert "A100" not in written
    assert "H200" not in written
    assert read_document(json.loads(written)).selected == ()
