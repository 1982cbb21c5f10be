"""Ways around the ledger that were only shown in the core, told on the real cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from local_cluster.api import ApiError
from tests.e2e.sharing import objects
from tests.e2e.sharing.objects import QUEUE
from tests.e2e.sharing.silent_watch import SilentWatch
from tests.e2e.sharing.stories import CLAIM, NODE, Story

MIRROR = {"kubernetes.io/config.mirror": "hash", "kubernetes.io/config.source": "file"}
CONFIGURATION = "moorage.dev/configuration"
UNATTRIBUTED = "moorage_scheduler_plugin_unattributed"


def test_a_nodes_mirror_pods_charge_no_closed_queue_and_an_open_one_by_their_requests(
    story: Story,
) -> None:
    """C2: whoever has a kubelet's token shows static pods as he likes."""
    closed: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"team": "victims"}}}
    victim = story.queue("victim", limit=4, **closed)
    open_to_all = story.queue("open", limit=4)
    _instance(story, capacity=2)
    _mirror_pod(story, "greedy", victim, 2)

    told = story.wait_told("greedy", "Unattributed")
    assert f'its namespace may not use queue "{victim}"' in told
    assert told in story.until("its queue says so, too", lambda: _condition(story, victim))
    figure = f'{UNATTRIBUTED}{{device_class="{story.name}"'
    story.until("a figure says it", lambda: f"{figure}}} 2.0" in story.plugin.page("/metrics"))
    _mirror_pod(story, "first", open_to_all, 2)
    _mirror_pod(story, "second", open_to_all, 1)
    story.delete("pod", "greedy")
    story.wait_figures({open_to_all: 3, victim: 0})
    story.until("its queue says it no more", lambda: not _condition(story, victim))
    story.until("the figure is gone", lambda: figure not in story.plugin.page("/metrics"))
    story.delete("pod", "first")
    story.wait_figures({open_to_all: 1, victim: 0})


def test_a_device_stays_charged_when_the_class_of_its_instance_goes(story: Story) -> None:
    """A4: the device is in use, whatever it was found by."""
    vision = story.queue("vision", limit=1)
    story.devices(2)
    instance = _instance(story, capacity=2)
    of_instance = objects.device_class(instance, story.driver)
    of_instance["metadata"]["labels"][CONFIGURATION] = story.name
    story.create("class", of_instance)
    story.claim(class_name=instance)
    story.pod("first", vision)
    story.wait_bound("first")
    story.wait_figures({vision: 1})

    story.delete("class", instance)
    _wait_classes_seen(story)

    story.claim("other")
    story.pod("second", vision, "other")
    assert f"uses 1 {story.name}" in story.wait_refused("second", "OverLimit")
    story.wait_figures({vision: 1})
    story.delete("pod", "first")
    story.wait_bound("second")
    story.wait_figures({vision: 1})


def test_a_labelled_claim_is_judged_as_it_is_and_not_as_an_earlier_attempt_reserved_it(
    watched: tuple[Story, SilentWatch],
) -> None:
    """A6: what the watch told of the first attempt looks fresh at the second."""
    story, watch = watched
    vision, robots = story.queue("vision"), story.queue("robots")
    third = story.queue("third", limit=0)
    story.devices(1)
    story.claim(labels={QUEUE: vision})
    with story.bindings_stopped("request.name == 'first'") as gate:
        story.pod("first", robots)
        story.until("its binding is under way", lambda: "first" in gate.stopped)
        story.wait_figures({vision: 1})
        with watch.silent():
            with story.holding("filter", "first"):
                gate.refuse()
                story.until("it is tried again", lambda: story.is_held("filter", "first"))
                story.delete("claim", CLAIM)
                story.claim(labels={QUEUE: third})
                gate.allow()
            sentence = story.wait_refused("first", "OverLimit")

    assert f'queue "{third}" uses 0 {story.name}, 1 more' in sentence
    assert story.bound() == set()
    story.change_queue(third, {"resources": [{"deviceClass": story.name, "limit": 1}]})
    story.wait_bound("first")
    assert (story.owner(), story.owner_pod()) == (third, "")
    story.wait_figures({vision: 0, robots: 0, third: 1})


def test_nobody_is_evicted_for_a_pod_that_rests(story: Story) -> None:
    """A7: what Filter says of it holds for Preempt as well."""
    vision = story.queue("vision")
    story.devices(2)
    story.claim()
    story.claim("other")
    story.plain_pod("innocent")
    story.wait_bound("innocent")
    map_of_victims = {NODE: {"Pods": [{"UID": story.uid("pod", "innocent")}]}}

    def ask(verb: str, pod: str) -> Any:
        said = {"Pod": story.get("pod", pod)}
        more: dict[str, Any] = {"NodeNameToMetaVictims": map_of_victims}
        return story.extender.ask(verb, {**said, **(more if verb == "preempt" else _NODES)})

    def rests() -> bool:
        return "rests" in str(ask("filter", "unlucky").get("Error", ""))

    def asked_at_rest() -> Any:
        """Asked before and after it, so that it rests in between."""
        return rests() and (answer := ask("preempt", "unlucky")) and rests() and answer

    with story.holding("filter", "calm"):
        story.pod("calm", vision, "other")
        story.until("it is filtered", lambda: story.is_held("filter", "calm"))
        assert list(ask("preempt", "calm")["NodeNameToMetaVictims"]) == [NODE]
    with story.bindings_stopped("request.name == 'unlucky'") as gate:
        gate.refuse()
        story.pod("unlucky", vision)
        answer = story.until("it rests", asked_at_rest)

    assert answer["NodeNameToMetaVictims"] == {}
    story.wait_bound("unlucky")
    assert "innocent" in story.bound()


def test_an_owner_that_could_be_written_on_one_of_two_claims_is_taken_back(story: Story) -> None:
    """A8: the pod is not bound, so that nobody is to pay for the first claim."""
    vision, robots = story.queue("vision"), story.queue("robots")
    story.devices(2)
    story.claim("one")
    story.claim("two")
    with _no_owner_on(story, "two"), story.holding("bind", "first"):
        story.pod("first", vision, "one", "two")
        story.until("it is about to be bound", lambda: story.is_held("bind", "first"))
        story.extender.hold("filter", story.key("first"))
        story.extender.let_go("bind", story.key("first"))
        story.until("it is tried again", lambda: story.is_held("filter", "first"))

        written, taken_back = story.written_owners("one")
        assert written["metadata"]["labels"][QUEUE] == vision
        assert QUEUE not in taken_back["metadata"].get("labels", {})
        # Not by the keeper: kube-scheduler had not heard yet that it is not bound.
        assert [pod["name"] for pod in taken_back["status"]["reservedFor"]] == ["first"]
        assert [story.owner(claim) for claim in ("one", "two")] == ["", ""]
        story.wait_figures({vision: 0})
        story.delete("pod", "first")
        story.extender.let_go("filter", story.key("first"))
    story.pod("second", robots, "one", "two")
    story.wait_bound("second")
    story.wait_figures({vision: 0, robots: 2})


_NODES = {"NodeNames": [NODE]}


def _condition(story: Story, queue: str) -> str:
    """What a Queue says of those who name it and whom it does not pay for; "" for nothing."""
    conditions = story.get("queue", queue).get("status", {}).get("conditions", ())
    return next((str(c["message"]) for c in conditions if c["type"] == "Unattributed"), "")


def _instance(story: Story, *, capacity: int) -> str:
    """An Instance of a Configuration named as the story is, which the story's node sees."""
    name = f"{story.name}-8120fe"
    spec = {
        "configurationName": story.name,
        "cdiName": f"akri.sh/{story.name}=8120fe",
        "capacity": capacity,
        "nodes": [NODE],
    }
    kind = {"apiVersion": "akri.sh/v0", "kind": "Instance"}
    story.create("instance", {**kind, "metadata": {"name": name}, "spec": spec})
    return name


def _mirror_pod(story: Story, name: str, queue: str, amount: int) -> None:
    """As a kubelet writes it, by its own rights: it runs already, and nobody was asked."""
    resources = {"limits": {f"akri.sh/{story.name}": str(amount)}}
    labels = {QUEUE: queue}
    pod = objects.pod(name, labels=labels, resources=resources, nodeName=NODE)
    node = story.api.get(f"/api/v1/nodes/{NODE}")["metadata"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": node["uid"]}
    pod["metadata"] |= {
        "annotations": MIRROR,
        "namespace": story.namespace,
        "ownerReferences": [{**owner, "controller": True}],
    }
    as_node = (
        f"--as=system:node:{NODE}",
        "--as-group=system:nodes",
        "--as-group=system:authenticated",
    )
    story.cluster.kubectl("create", "--validate=false", "-f", "-", *as_node, stdin=json.dumps(pod))


def _wait_classes_seen(story: Story) -> None:
    """Wait until the plugin has heard of all classes that were changed until now."""
    late = f"late-{story.name}"
    story.create("class", objects.device_class(late, story.driver))
    story.claim("late", class_name=late)
    story.pod("late", "", "late", schedulerName="nobody")
    pod = story.get("pod", "late")
    # Of a version that nobody knows: of one that is known the body is not read.
    metadata = {**pod["metadata"], "resourceVersion": "1"}
    spec = {**pod["spec"], "schedulerName": objects.SCHEDULER}
    asked = {"Pod": {**pod, "metadata": metadata, "spec": spec}, **_NODES}

    def is_seen() -> bool:
        answer = story.extender.ask("filter", asked)
        refused = answer.get("FailedAndUnresolvableNodes") or {}
        return str(refused.get(NODE, "")).startswith("NoQueue: ")

    story.until("the plugin knows the class that came last", is_seen)


@contextmanager
def _no_owner_on(story: Story, claim: str) -> Iterator[None]:
    """Nobody labels this claim, not even the binder."""
    labelled = f"has(object.metadata.labels) && '{QUEUE}' in object.metadata.labels"
    probed = "has(object.metadata.annotations) && 'probe' in object.metadata.annotations"
    rule = {"apiGroups": ["resource.k8s.io"], "apiVersions": ["v1"], "operations": ["UPDATE"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": story.namespace}}
    group, name = "admissionregistration.k8s.io/v1", f"no-owner-{story.name}"
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": here,
            "resourceRules": [{**rule, "resources": ["resourceclaims"]}],
        },
        "validations": [
            {
                "expression": f"object.metadata.name != '{claim}' || !({labelled} || {probed})",
                "message": "the test refuses this owner",
            }
        ],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    kinds = {"ValidatingAdmissionPolicy": policy, "ValidatingAdmissionPolicyBinding": binding}
    story.cluster.apply(
        [
            {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec}
            for kind, spec in kinds.items()
        ]
    )
    try:
        story.until("the policy is in force", lambda: _is_refused(story, claim))
        yield
    finally:
        for kind in kinds:
            story.cluster.kubectl("delete", kind.lower(), name)
        story.until("the policy is gone", lambda: not _is_refused(story, claim))


def _is_refused(story: Story, claim: str) -> bool:
    marks = {"metadata": {"annotations": {"probe": "probe"}}}
    try:
        story.patch("claim", claim, marks, "?dryRun=All")
    except ApiError as error:
        return "the test refuses this owner" in str(error)
    return False
