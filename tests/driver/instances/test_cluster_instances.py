"""The elected driver's look at all Instances: when it is due."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest

from driver.api import NODE_LABEL
from driver.instances.cluster_instances import ClusterInstances, LostNodeSettings
from driver.instances.unseen_instances import ObservedInstance, observed_instance
from kube.calls.api import ApiClient
from kube.objects import ObjectKey
from kube.stores.api import Added, Change, Deleted, Modified
from tests.driver.builders import NOW

KEY = ObjectKey("default", "camera-000001")


def an_observed_instance(**spec: Any) -> ObservedInstance:
    metadata = {"name": KEY.name, "namespace": KEY.namespace, "labels": {NODE_LABEL: ""}}
    times = {"uid": "uid", "resourceVersion": "1", "creationTimestamp": NOW.isoformat()}
    return observed_instance(
        {
            "metadata": {**metadata, **times},
            "spec": {"configurationName": "camera", "capacity": 1, **spec},
        }
    )


def looks(change: Change[ObservedInstance], monkeypatch: pytest.MonkeyPatch) -> int:
    """How often all Instances are looked at for this."""
    settings = LostNodeSettings(timedelta(minutes=5), lambda _: None)
    cluster = ClusterInstances(cast("ApiClient", None), dict, settings)
    asked: list[bool] = []
    monkeypatch.setattr(cluster, "requeue", lambda: asked.append(True))
    cluster.on_instance(change)
    return len(asked)


def test_what_is_deleted_leaves_nothing_to_clear_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done about an Instance follows from it and from nodes, never from another."""
    seen, unseen = an_observed_instance(nodes=["node-a"]), an_observed_instance()

    assert looks(Added(KEY, seen), monkeypatch) == 1
    assert looks(Modified(KEY, seen, unseen), monkeypatch) == 1
    assert looks(Deleted(KEY, unseen), monkeypatch) == 0
