"""Requests of `akri.sh/...` resources are charged to the pod's queue, with no claims anywhere."""

from __future__ import annotations

from typing import Any

from local_cluster.api import ApiError
from tests.e2e.legacy.stories import NODE, LegacyStory, container, wants
from tests.e2e.sharing import objects
from tests.e2e.sharing.admission import GATE, MANAGED
from tests.e2e.sharing.objects import CHARGES, QUEUE
from tests.e2e.webhook.installation import WebhookProcess

NON_PREEMPTIBLE = "non-preemptible"
ADMITTED = "moorage.dev/Admitted"


def test_requests_of_both_levels_are_charged_until_their_pods_end(story: LegacyStory) -> None:
    root = story.queue("root", limit=3)
    vision, robots = story.queue("vision", parent=root, limit=2), story.queue("robots", parent=root)
    camera, _ = story.offer()
    story.user("of-any", vision)
    story.user("of-one", vision, camera)
    story.wait_bound("of-any", "of-one")
    story.wait_figures({root: 2, vision: 2, robots: 0})

    story.user("beyond", vision, camera)
    sentence = story.wait_refused("beyond", "OverLimit")
    assert f'queue "{vision}"' in sentence
    assert "limit of 2" in sentence
    story.user("last-of-the-root", robots)
    story.wait_bound("last-of-the-root")
    story.user("beyond-the-root", robots)
    assert f'queue "{root}"' in story.wait_refused("beyond-the-root", "OverLimit")
    story.wait_figures({root: 3, vision: 2, robots: 1})

    # Whoever of the two is tried first gets the first place that is free.
    story.finish("of-any", "Succeeded")
    story.finish("of-one", "Failed")
    story.wait_bound("beyond", "beyond-the-root")
    story.delete("pod", "last-of-the-root")
    story.wait_figures({root: 2, vision: 1, robots: 1})


def test_a_slot_is_taken_back_for_a_pod_of_a_queue_within_its_quota(story: LegacyStory) -> None:
    """No limit is reached: the device plugin of the only node that serves has no more of it."""
    mine, robots = story.queue("mine", quota=1), story.queue("robots", quota=0)
    here: dict[str, Any] = {"nodeSelector": {"kubernetes.io/hostname": NODE}}
    story.offer()
    story.user("r1", robots, **here)
    story.user("r2", robots, **here)
    story.wait_bound("r1", "r2")

    story.user("w", mine, **here)

    story.wait_bound("w")
    (gone,) = {"r1", "r2"} - story.bound()
    why = story.wait_told(gone, "Reclaimed")
    assert why.endswith(f'which leaves it 1 akri.sh/{story.name} on node "{NODE}".')
    story.wait_figures({mine: 1, robots: 1})


def test_a_queue_that_is_charged_stays_until_its_pods_end_and_takes_no_new_ones(
    story: LegacyStory,
) -> None:
    root = story.queue("root", limit=3)
    vision = story.queue("vision", parent=root)
    story.offer()
    story.user("runs", vision)
    story.wait_bound("runs")
    story.wait_figures({root: 1, vision: 1})
    assert story.get("queue", root)["metadata"]["finalizers"] == [CHARGES]

    story.api.delete(story.path("queue", vision))
    story.until("it goes", lambda: "deletionTimestamp" in story.get("queue", vision)["metadata"])
    story.user("late", vision)

    assert "is being deleted" in story.wait_refused("late", "QueueNotFound")
    story.wait_figures({root: 1, vision: 1})
    story.delete("pod", "runs")
    story.until("the queue is gone", lambda: story.find("queue", vision) is None)
    story.wait_figures({root: 0})


def test_what_a_pod_asks_for_is_what_kubernetes_counts(story: LegacyStory) -> None:
    """Containers together with sidecars, or the greediest of its init containers."""
    vision = story.queue("vision", quota=4, limit=9)
    camera, other = story.offer()
    starts = container("starts", {camera: 3})
    stays = container("stays", {camera: 1}, restartPolicy="Always")
    story.user("greedy", vision, other, preemptibility=NON_PREEMPTIBLE, initContainers=[starts])
    story.wait_bound("greedy")
    # Its one container asks for another resource: 3 of the camera, then 1 of the other.
    story.wait_figures({vision: 4})
    story.wait_figures({vision: 4}, "usageNonPreemptible")

    story.delete("pod", "greedy")
    story.user("with-sidecar", vision, camera, 2, initContainers=[stays])
    story.wait_bound("with-sidecar")
    story.wait_figures({vision: 3})

    story.user("strict", vision, "", 2, preemptibility=NON_PREEMPTIBLE)
    story.wait_bound("strict")
    story.user("beyond", vision, other, 3, preemptibility=NON_PREEMPTIBLE)
    story.wait_refused("beyond", "NonPreemptibleOverQuota")
    story.wait_figures({vision: 5})


def test_a_resource_without_a_configuration_is_nobodys_business(story: LegacyStory) -> None:
    story.offer()
    unknown = f"{story.name}-unknown"
    story.let_node_offer("fake-0000", {unknown: 1})

    story.user("of-none", "", unknown)
    story.wait_bound("of-none")
    story.user("without-a-queue", "")

    story.wait_refused("without-a-queue", "NoQueue")


def test_the_webhook_and_the_policies_keep_the_rules_here_too(story: LegacyStory) -> None:
    vision = story.queue("vision")
    story.offer()

    past = story.until("a pod past the plugin is refused", lambda: _refusal_past(story, vision))
    unknown = story.refusal(lambda: story.user("unknown", f"nobody-{story.name}"))
    story.user("good", vision)
    label = {"metadata": {"labels": {QUEUE: "another"}}}
    changed = story.refusal(lambda: story.patch("pod", "good", label))

    assert "spec.schedulerName" in past
    assert f'queue "nobody-{story.name}"' in unknown.lower()
    assert f"label {QUEUE} cannot be added, changed or removed" in changed
    warned = [
        (policy["metadata"]["name"], policy["status"]["typeChecking"])
        for policy in story.cluster.list("validatingadmissionpolicies")
        if policy["status"].get("typeChecking", {}).get("expressionWarnings")
    ]
    assert warned == []


def test_pods_of_a_namespace_that_opted_in_wait_at_the_gate(story: LegacyStory) -> None:
    vision = story.queue("vision", limit=1)
    story.offer()
    story.label_namespace({MANAGED: "true", QUEUE: vision})
    elsewhere: dict[str, Any] = {"schedulerName": "default-scheduler"}
    story.until(
        "the namespace has opted in", lambda: _given_queue(story, **elsewhere) == {QUEUE: vision}
    )
    story.user("one", "", **elsewhere)
    story.wait_bound("one")

    story.user("two", "", **elsewhere)

    story.until("two is told what it waits for", lambda: _waits_for(story, "two") == "OverLimit")
    assert story.get("pod", "two")["spec"]["schedulingGates"] == [{"name": GATE}]
    story.finish("one", "Succeeded")
    story.wait_bound("two")
    story.wait_figures({vision: 1})


def _refusal_past(story: LegacyStory, queue: str) -> str:
    """Why a pod for another scheduler is refused; empty until the webhook knows the resource."""
    asked = wants({story.name: 1})
    past: dict[str, Any] = {"labels": {QUEUE: queue}, "schedulerName": "default-scheduler"}
    try:
        body = objects.pod("past", resources=asked, **past)
        story.api.create(f"{story.path('pod')}?dryRun=All", body)
    except ApiError as error:
        return str(error)
    return ""


def _given_queue(story: LegacyStory, **spec: Any) -> dict[str, str]:
    """The labels that a pod is given now; neither API server nor webhook tells when."""
    body = objects.pod("probe", resources=wants({story.name: 1}), **spec)
    found: dict[str, str] = story.api.create(f"{story.path('pod')}?dryRun=All", body)["metadata"][
        "labels"
    ]
    return found


def _waits_for(story: LegacyStory, pod: str) -> str:
    """The reason of the condition that the plugin writes."""
    conditions = story.get("pod", pod)["status"].get("conditions", ())
    return next((c["reason"] for c in conditions if c["type"] == ADMITTED), "")


def test_all_is_charged_as_before_by_a_plugin_that_was_killed(
    story: LegacyStory, webhook: WebhookProcess
) -> None:
    """Each component says once that there is no DRA here, and works."""
    vision = story.queue("vision", limit=1)
    story.offer()
    story.user("first", vision)
    story.wait_bound("first")
    lines = len(story.plugin.handle.logs().splitlines())

    story.plugin.kill()
    story.plugin.wait_ready()
    story.user("second", vision)

    story.wait_refused("second", "OverLimit")
    story.wait_figures({vision: 1})
    said = story.plugin.handle.logs().splitlines()[lines:]
    assert sum("resourceclaims of resource.k8s.io/v1 are not served" in line for line in said) == 1
    kind = "/apis/resource.k8s.io/v1/resourceclaims\n"
    assert webhook.log.read_text().count(f"not served here: {kind}") == 1
