"""Any trees of KAI's and Kueue's: Queues without a cycle, and no field without an effect.

A field has an effect if the Queues or the findings are others without it, or if a finding is about
it or about what it is in. A field that an object must have is one that it is refused without.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugin.importing.api import NotValidError, Translation, translated
from tests.scheduler_plugin.importing.translations import GPU_CLASS, Specs, specs

Objects = list[dict[str, Any]]
Path = tuple[str | int, ...]

REDUNDANT = "coveredResources"
"""The flavors of a group list the same resources."""

NAMES = st.sampled_from(["a", "b", "c", "d", "e", "x" * 80])
AMOUNTS = st.sampled_from([1, 3, "5", "40Gi", "1500m", 2.5])
RESOURCES = st.sampled_from(["cpu", "example.com/gpu", "gpu.memory", "example.com/unknown"])
CONFIGURATION = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "resources": {
        "deviceClassMappings": [
            {"name": "example.com/gpu", "deviceClassNames": [GPU_CLASS]},
            {
                "name": "gpu.memory",
                "deviceClassNames": [GPU_CLASS],
                "sources": [{"capacity": {"name": "memory", "driver": "gpu.example.com"}}],
            },
        ]
    },
}


def groups(resources: list[str], quotas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A group for each resource, with the same flavors."""
    return [
        {
            "coveredResources": [resource],
            "flavors": [
                {"name": f"flavor-{number}", "resources": [{"name": resource, **quota}]}
                for number, quota in enumerate(quotas)
            ],
        }
        for resource in resources
    ]


GROUPS = st.builds(
    groups,
    st.lists(RESOURCES, unique=True, max_size=3),
    st.lists(
        st.fixed_dictionaries(
            {"nominalQuota": AMOUNTS},
            optional={"borrowingLimit": AMOUNTS, "lendingLimit": st.just("100m")},
        ),
        min_size=1,
        max_size=2,
    ),
)
FAIR_SHARING = st.fixed_dictionaries({"weight": st.sampled_from([0, 2, "3", "500m"])})
PREEMPTION = st.fixed_dictionaries(
    {},
    optional={
        "reclaimWithinCohort": st.sampled_from(["Never", "LowerPriority"]),
        "withinClusterQueue": st.sampled_from(["Never", "LowerOrNewerEqualPriority"]),
        "borrowWithinCohort": st.just({"policy": "LowerPriority", "maxPriorityThreshold": 1}),
    },
)
SELECTORS = st.sampled_from(
    [{}, {"matchLabels": {"a": "b"}}, {"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
)
UNKNOWN = st.sampled_from([0, "", {"a": {"b": [1]}}, [2]])
CLUSTER_QUEUES = st.fixed_dictionaries(
    {},
    optional={
        "cohortName": NAMES,
        "resourceGroups": GROUPS,
        "fairSharing": FAIR_SHARING,
        "preemption": PREEMPTION,
        "namespaceSelector": SELECTORS,
        "queueingStrategy": st.just("StrictFIFO"),
        "stopPolicy": st.just("Hold"),
        "ofTomorrow": UNKNOWN,
    },
)
COHORTS = st.fixed_dictionaries(
    {},
    optional={
        "parentName": NAMES,
        "resourceGroups": GROUPS,
        "fairSharing": FAIR_SHARING,
        "ofTomorrow": UNKNOWN,
    },
)
LOCAL_QUEUES = st.fixed_dictionaries(
    {"clusterQueue": NAMES}, optional={"stopPolicy": st.just("Hold")}
)
CEILINGS = st.sampled_from([-1, 1, 2.5, 4])
QUEUE_RESOURCES = st.fixed_dictionaries(
    {"quota": CEILINGS, "limit": CEILINGS},
    optional={"overQuotaWeight": st.sampled_from([0.5, 2, 3_000_000]), "ofTomorrow": UNKNOWN},
)
OF_NODES = st.fixed_dictionaries({"quota": CEILINGS, "limit": st.sampled_from([1, 4])})
"""What is unlimited of nodes' resources means what Moorage does."""
KAI_QUEUES = st.fixed_dictionaries(
    {},
    optional={
        "displayName": st.just("A name"),
        "parentQueue": NAMES,
        "priority": st.sampled_from([-1, 1, 200]),
        "preemptMinRuntime": st.sampled_from(["5m", "soon"]),
        "reclaimMinRuntime": st.just("1h0m0s"),
        "resources": st.fixed_dictionaries(
            {"gpu": QUEUE_RESOURCES}, optional={"cpu": OF_NODES, "memory": OF_NODES}
        ),
        "accountedResources": st.just([{"resourceRef": "memory", "limit": "40Gi"}]),
    },
)
MEMORY = {
    "apiVersion": "scheduling.run.ai/v1alpha1",
    "kind": "AccountedResource",
    "metadata": {"name": "memory"},
    "spec": {
        "sources": [
            {
                "dra": {"deviceClassName": GPU_CLASS},
                "quantity": {"dra": {"selectedCapacity": {"capacityName": "memory"}}},
            }
        ]
    },
}


def objects(kind: str, version: str, found: st.SearchStrategy[Any]) -> st.SearchStrategy[Objects]:
    """Objects of one kind, with names of their own."""
    namespaced = kind == "LocalQueue"
    return st.dictionaries(NAMES, found, max_size=5).map(
        lambda each: [
            {
                "apiVersion": version,
                "kind": kind,
                "metadata": {"name": name, **({"namespace": "lab"} if namespaced else {})},
                "spec": spec,
            }
            for name, spec in each.items()
        ]
    )


OF_KUEUE = st.tuples(
    objects("ClusterQueue", "kueue.x-k8s.io/v1beta2", CLUSTER_QUEUES),
    objects("Cohort", "kueue.x-k8s.io/v1beta2", COHORTS),
    objects("LocalQueue", "kueue.x-k8s.io/v1beta2", LOCAL_QUEUES),
).map(lambda found: [CONFIGURATION, *(each for some in found for each in some)])
OF_KAI = objects("Queue", "scheduling.run.ai/v2", KAI_QUEUES).map(lambda found: [MEMORY, *found])


def assert_is_a_forest(queues: Specs) -> None:
    for name in queues:
        seen, at = {name}, queues[name].get("parent")
        while at in queues:
            assert at not in seen
            seen.add(at)
            at = queues[at].get("parent")


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    """The path of each field that is set, those of objects and lists included."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in items:
        if isinstance(key, str):
            yield (*at, key)
        if isinstance(each, dict | list):
            yield from paths(each, (*at, key))


def without(body: dict[str, Any], path: Path) -> dict[str, Any]:
    found: Any = deepcopy(body)
    at = found
    for step in path[:-1]:
        at = at[step]
    del at[path[-1]]
    return dict(found)


def is_reported(found: Translation, body: dict[str, Any], path: Path) -> bool:
    """Whether a finding is about the field, about what it is in, or about all that is in it."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)[1:]
    metadata = body["metadata"]
    parts = (body["kind"], metadata.get("namespace"), metadata["name"])
    about = "/".join(filter(None, parts))
    return any(
        each.about == about and (is_inside(text, known) or is_inside(known, text))
        for each in found.findings
        for known in each.paths
    )


def is_inside(path: str, other: str) -> bool:
    return path == other or path.startswith((f"{other}.", f"{other}["))


def fields_without_effect(
    world: Objects, number: int, found: Translation, gpu_class: str
) -> Iterator[str]:
    body = world[number]
    for path in paths(body["spec"], ("spec",)):
        if REDUNDANT in path or is_empty(body, path) or is_reported(found, body, path):
            continue
        others = [*world[:number], without(body, path), *world[number + 1 :]]
        try:
            changed = translated(others, {}, gpu_class)
        except NotValidError:
            continue
        if changed == found:
            yield f"{body['kind']} {path}"


def is_empty(body: Any, path: Path) -> bool:
    """Whether it is an object or a list without any field that could have an effect."""
    for step in path:
        body = body[step]
    return body in ({}, [])


@given(OF_KUEUE)
def test_trees_of_cohorts_become_queues_and_no_field_is_without_effect(world: Objects) -> None:
    found = translated(world, {})

    assert_is_a_forest(specs(found))
    for number in range(1, len(world)):
        assert list(fields_without_effect(world, number, found, "")) == []


@given(OF_KAI, st.sampled_from(["", GPU_CLASS]))
def test_trees_of_kai_become_queues_and_no_field_is_without_effect(
    world: Objects, gpu_class: str
) -> None:
    found = translated(world, {}, gpu_class)

    assert_is_a_forest(specs(found))
    for number in range(1, len(world)):
        assert list(fields_without_effect(world, number, found, gpu_class)) == []
