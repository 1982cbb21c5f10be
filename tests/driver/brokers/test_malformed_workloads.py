"""A wrong value anywhere in a Configuration is a problem with a path, or bodies can be made of it.

The API server takes any PodSpec, JobSpec and ServiceSpec in a Configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from driver.brokers.plans import plan_configuration, plan_device
from driver.brokers.workloads import wanted
from tests.driver.brokers.broker_builders import SERVICE_SPEC, a_broker, a_container, a_device
from tests.driver.builders import a_configuration_object

WRONG: tuple[Any, ...] = (
    None,
    5,
    1.5,
    True,
    "x",
    [],
    [5],
    [None],
    ["x"],
    {},
    {"x": 5},
    {"x": None},
)
TERM = {"matchExpressions": [{"key": "zone"}], "matchFields": [{"key": "metadata.name"}]}
REQUIRED = {"nodeSelectorTerms": [TERM]}
POD_SPEC: dict[str, Any] = {
    "containers": [a_container()],
    "initContainers": [a_container(restartPolicy="Always")],
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu-of-all"}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": REQUIRED}},
}
POD_SPEC["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
TEMPLATE = {"metadata": {"labels": {"line": "1"}}, "spec": POD_SPEC}
SERVICE = {**SERVICE_SPEC, "selector": {"tier": "edge"}}
BROKERS: dict[str, dict[str, Any]] = {
    "pod": {"brokerPodSpec": POD_SPEC},
    "job": {"brokerJobSpec": {"template": TEMPLATE}},
}

Path = tuple[str | int, ...]


def a_spec(broker: dict[str, Any]) -> dict[str, Any]:
    """A spec that has every field that is read."""
    services = {"instanceServiceSpec": SERVICE, "configurationServiceSpec": SERVICE}
    return {"brokerSpec": broker, "maxBrokers": 5, **services}


def paths(value: Any, above: Path = ()) -> Iterator[Path]:
    """All fields and entries below a value."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in entries:
        yield (*above, key)
        if isinstance(inner, dict | list):
            yield from paths(inner, (*above, key))


def replaced(spec: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    changed: Any = deepcopy(spec)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    found: dict[str, Any] = changed
    return found


@pytest.mark.parametrize("kind", BROKERS)
@pytest.mark.parametrize("is_dra", [True, False])
def test_a_wrong_value_is_reported_or_left_to_the_api_server(kind: str, *, is_dra: bool) -> None:
    spec = a_spec(BROKERS[kind])
    device = a_device(is_dra=is_dra)
    for path in paths(spec):
        for value in WRONG:
            found = wanted(a_configuration_object(**replaced(spec, path, value)))
            assert all(each.path.startswith("spec") and each.message for each in found.problems)
            if found.workloads is None:
                assert found.problems, (path, value)
                continue
            pods = [a_broker(found.workloads, device)] if found.workloads.pod else []
            plan_device(found.workloads, device, pods, lambda _: 0.0)
            plan_configuration(found.workloads, (), pods)


@pytest.mark.parametrize("kind", BROKERS)
def test_the_spec_that_has_every_field_is_right(kind: str) -> None:
    assert wanted(a_configuration_object(**a_spec(BROKERS[kind]))).problems == ()
