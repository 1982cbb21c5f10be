"""The Queue's model: what is wrong with one, and that the plugin's light reader reads the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.shapes.quantities import thousandths
from kube.shapes.times import parse_duration
from scheduler_plugin.models import QueueModel, queue_problems
from scheduler_plugin.objects.amounts import Ceiling
from scheduler_plugin.objects.names import Queue
from scheduler_plugin.objects.queue_objects import parse_queue
from scheduler_plugin.share_models import Share
from tests.scheduler_plugin.builders import a_queue_object
from tests.schema_objects import admitted, nearly_admitted, schema_of

SCHEMA = schema_of("queues.moorage.dev")
SPECS = st.one_of(admitted(SCHEMA), nearly_admitted(SCHEMA))
NAMES = st.sampled_from(["vision", "a", "A!", "a" * 63, "a" * 64])

GRACE = "spec.claimSharing.ownerExitGracePeriod"
WEIGHT = "spec.resources[0].overQuotaWeight"
SECOND = "spec.resources[1].deviceClass"
MEMORY: dict[str, Any] = {
    "name": "gpu-memory",
    "driver": "gpu.example.com",
    "measure": {"capacity": "memory"},
}
EXPRESSION = "spec.namespaceSelector.matchExpressions[0]"


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"parent": "vision"}, "spec.parent"),
        ({"parent": "Vision!"}, "spec.parent"),
        ({"parent": 7}, "spec.parent"),
        ({"claimSharing": []}, "spec.claimSharing"),
        ({"claimSharing": {"policy": "Maybe"}}, "spec.claimSharing.policy"),
        ({"claimSharing": {"queues": ["a", "B"]}}, "spec.claimSharing.queues[1]"),
        ({"claimSharing": {"onOwnerExit": "Run"}}, "spec.claimSharing.onOwnerExit"),
        ({"claimSharing": {"ownerExitGracePeriod": "-5m"}}, GRACE),
        ({"claimSharing": {"ownerExitGracePeriod": "9999h"}}, GRACE),
        ({"priority": -1}, "spec.priority"),
        ({"priority": 2 * 10**9}, "spec.priority"),
        ({"preemptMinRuntime": "soon"}, "spec.preemptMinRuntime"),
        ({"reclaimMinRuntime": "9999h"}, "spec.reclaimMinRuntime"),
        ({"reclaimMinRuntime": 5}, "spec.reclaimMinRuntime"),
        ({"resources": [{"deviceClass": "a", "overQuotaWeight": -1}]}, WEIGHT),
        ({"resources": [{"deviceClass": "a", "overQuotaWeight": 0.5}]}, WEIGHT),
        ({"resources": {}}, "spec.resources"),
        ({"resources": [7]}, "spec.resources[0]"),
        ({"resources": [{"deviceClass": "a", "quota": 2, "limit": 1}]}, "spec.resources[0].limit"),
        ({"resources": [{"deviceClass": "a", "quota": -2}]}, "spec.resources[0].quota"),
        ({"resources": [{"deviceClass": "a", "quota": True}]}, "spec.resources[0].quota"),
        ({"resources": [{"deviceClass": "a", "limit": 1.5}]}, "spec.resources[0].limit"),
        ({"resources": [{"deviceClass": "a"}, {"deviceClass": "a"}]}, SECOND),
        ({"resources": [{"quota": 1}]}, "spec.resources[0].deviceClass"),
        ({"resources": [{**MEMORY, "deviceClass": "gpu"}]}, "spec.resources[0].deviceClass"),
        ({"resources": [{**MEMORY, "name": ""}]}, "spec.resources[0].name"),
        ({"resources": [MEMORY, MEMORY]}, "spec.resources[1].name"),
        ({"resources": [MEMORY, {"deviceClass": "gpu-memory"}]}, SECOND),
        ({"resources": [{**MEMORY, "quota": "4GB"}]}, "spec.resources[0].quota"),
        ({"resources": [{**MEMORY, "quota": "-4Gi"}]}, "spec.resources[0].quota"),
        ({"resources": [{**MEMORY, "quota": "16Ei"}]}, "spec.resources[0].quota"),
        ({"resources": [{**MEMORY, "quota": "2Gi", "limit": "1Gi"}]}, "spec.resources[0].limit"),
        ({"resources": [{**MEMORY, "measure": {}}]}, "spec.resources[0].measure"),
        ({"resources": [{**MEMORY, "selector": ""}]}, "spec.resources[0].selector"),
        ({"resources": [{"deviceClass": "a", "quota": "2"}]}, "spec.resources[0].quota"),
        ({"resources": [{"deviceClass": "a", "limit": 2**63}]}, "spec.resources[0].limit"),
        ({"namespaceSelector": 1}, "spec.namespaceSelector"),
        ({"namespaceSelector": {"matchLabels": {"a": 1}}}, "spec.namespaceSelector.matchLabels[a]"),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
            f"{EXPRESSION}.operator",
        ),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            f"{EXPRESSION}.values",
        ),
    ],
)
def test_problem_names_its_field(spec: dict[str, Any], path: str) -> None:
    assert [problem.path for problem in queue_problems(a_queue_object(**spec))] == [path]


@pytest.mark.parametrize("text", ["5x", "", "5 m", "-5m", "10us", "5m\n"])
def test_what_is_no_duration_is_said_in_words(text: str) -> None:
    found = queue_problems(a_queue_object(preemptMinRuntime=text))

    said = f'"{text}" is no duration; write it like 90s, 5m or 1h30m.'
    assert [str(problem) for problem in found] == [f"spec.preemptMinRuntime: {said}"]


def test_all_problems_are_found_at_once() -> None:
    spec: dict[str, Any] = {
        "claimSharing": {"policy": "x"},
        "resources": [{"quota": []}, {"deviceClass": "A!"}],
    }

    assert [problem.path for problem in queue_problems(a_queue_object(**spec))] == [
        "spec.claimSharing.policy",
        "spec.resources[0].quota",
        "spec.resources[1].deviceClass",
    ]


def test_fields_of_entries_that_no_version_knows_yet_are_refused() -> None:
    """Ignored, they would leave an entry that counts something else."""
    measure = {"counter": {"set": "a", "name": "b", "sum": 1}}
    spec: dict[str, Any] = {
        "resources": [
            {"deviceClass": "gpu", "per": "node"},
            {"name": "m", "driver": "d", "measure": measure},
            {"name": "n", "driver": "d", "measure": {"capacity": "c", "scale": 2}},
        ]
    }

    assert [problem.path for problem in queue_problems(a_queue_object(**spec))] == [
        "spec.resources[0].per",
        "spec.resources[1].measure.counter.sum",
        "spec.resources[2].measure.scale",
    ]


def test_name_that_is_no_label_is_refused() -> None:
    (problem,) = queue_problems(a_queue_object("a" * 64))

    assert str(problem) == "metadata.name: 64 characters; it may have at most 63."


@given(NAMES, SPECS)
def test_the_light_reader_reads_what_the_model_admits(name: str, spec: Any) -> None:
    obj = {"metadata": {"name": name}, "spec": spec}

    if not queue_problems(obj):
        assert_same(parse_queue(obj), QueueModel.model_validate(obj))


def assert_same(queue: Queue, model: QueueModel) -> None:
    spec = model.spec
    assert spec is not None
    assert (queue.name, queue.parent) == (model.metadata.name, spec.parent or "")
    sharing = spec.claim_sharing
    if sharing is not None:
        grace = sharing.owner_exit_grace_period
        assert queue.sharing.policy == sharing.policy
        assert queue.sharing.queues == (None if sharing.queues is None else tuple(sharing.queues))
        assert queue.sharing.on_owner_exit == sharing.on_owner_exit
        assert queue.sharing.owner_exit_grace_period == (grace and parse_duration(grace))
        assert queue.sharing.evict_foreign == sharing.evict_foreign
        assert queue.sharing.label_at_create == sharing.label_at_create
    assert queue.priority == spec.priority
    for seconds, text in (
        (queue.preempt_min_runtime, spec.preempt_min_runtime),
        (queue.reclaim_min_runtime, spec.reclaim_min_runtime),
    ):
        assert seconds == (text and parse_duration(text))
    shares = {
        str(key): (_number(s.quota), _number(s.limit), s.weight) for key, s in queue.shares.items()
    }
    assert shares == {
        s.shown_name: (_quota(s), _amount(s, s.limit), _weight(s)) for s in spec.resources or ()
    }
    selector = spec.namespace_selector
    assert (queue.namespaces is None) == (selector is None)
    if selector is not None and queue.namespaces is not None:
        labels = selector.match_labels or {}
        assert [(r.key, r.operator, r.values) for r in queue.namespaces.requirements] == [
            *((key, "In", (value,)) for key, value in labels.items()),
            *((e.key, e.operator, tuple(e.values or ())) for e in selector.match_expressions or ()),
        ]


def _number(ceiling: Ceiling) -> int:
    return -1 if ceiling.most is None else ceiling.most


def _weight(share: Share) -> int:
    return 1 if share.over_quota_weight is None else share.over_quota_weight


def _quota(share: Share) -> int | None:
    """All that a queue may use is guaranteed where the quota has no end."""
    return _amount(share, share.limit if str(share.quota) == "-1" else share.quota)


def _amount(share: Share, value: int | str) -> int | None:
    if str(value) == "-1":
        return -1
    return thousandths(value) if share.measure else int(value)
