"""Why a pod is refused: each rule, on the queue that counts."""

from __future__ import annotations

from tests.e2e.sharing.objects import QUEUE, other_consumer
from tests.e2e.sharing.stories import CLAIM, Story

NON_PREEMPTIBLE = "non-preemptible"


def test_a_queue_that_opts_out_keeps_its_claims_to_itself_but_for_exceptions(
    story: Story,
) -> None:
    robots = story.queue("robots")
    arms = story.queue("arms", parent=robots)
    others = story.queue("others")
    private = story.queue("private", claimSharing={"policy": "Deny", "queues": [robots]})
    inheriting = story.queue("inheriting", parent=private)
    story.devices(1)
    story.claim()
    story.pod("owner", inheriting)
    story.wait_bound("owner")

    story.pod("exception", robots)
    story.pod("below-the-exception", arms)
    story.pod("kept-off", others)

    story.wait_bound("exception", "below-the-exception")
    sentence = story.wait_refused("kept-off", "ClaimSharingDenied")
    assert f'queue "{inheriting}"' in sentence
    assert f'queue "{others}"' in sentence
    assert story.node_of("kept-off") == ""
    assert f'with queue "{others}": Pod' in story.wait_told("shared", "ClaimSharingDenied")
    assert f'queue "{inheriting}" pays for' in story.wait_told("shared", "ClaimShared")


def test_a_child_shares_again_what_its_parent_denies(story: Story) -> None:
    private = story.queue("private", claimSharing={"policy": "Deny"})
    open_again = story.queue("open", parent=private, claimSharing={"policy": "Allow"})
    others = story.queue("others")
    story.devices(2)
    for name, queue in (("kept", private), ("given", open_again)):
        story.claim(name)
        story.pod(f"owner-of-{name}", queue, name)
        story.wait_bound(f"owner-of-{name}")

    story.pod("of-the-child", others, "given")
    story.pod("of-the-parent", others, "kept")

    story.wait_bound("of-the-child")
    story.wait_refused("of-the-parent", "ClaimSharingDenied")


def test_a_pod_waits_for_a_queue_to_opt_in_again(story: Story) -> None:
    private = story.queue("private", claimSharing={"policy": "Deny"})
    others = story.queue("others")
    story.devices(1)
    story.claim()
    story.pod("owner", private)
    story.wait_bound("owner")
    story.pod("waiting", others)
    story.wait_refused("waiting", "ClaimSharingDenied")

    story.change_queue(private, {"claimSharing": {"policy": "Allow"}})

    story.wait_bound("waiting")


def test_a_foreign_pod_that_is_not_preemptible_is_kept_off(story: Story) -> None:
    vision, robots = story.queue("vision"), story.queue("robots", quota=5)
    story.devices(1)
    story.claim()
    story.pod("owner", vision)
    story.wait_bound("owner")

    story.pod("foreign", robots, preemptibility=NON_PREEMPTIBLE)

    sentence = story.wait_refused("foreign", "ForeignNonPreemptible")
    assert f'queue "{vision}"' in sentence
    assert f'queue "{robots}"' in sentence


def test_a_limit_of_an_ancestor_counts_the_claims_of_all_its_descendants(story: Story) -> None:
    root = story.queue("root", limit=1)
    middle = story.queue("middle", parent=root)
    first, second = story.queue("first", parent=middle), story.queue("second", parent=root)
    story.devices(2)
    for name in ("one", "two"):
        story.claim(name)
    story.pod("within", first, "one")
    story.wait_bound("within")

    story.pod("beyond", second, "two")

    sentence = story.wait_refused("beyond", "OverLimit")
    assert f'queue "{root}"' in sentence
    assert "limit of 1" in sentence
    story.wait_figures({root: 1, middle: 1, first: 1, second: 0})


def test_a_quota_of_an_ancestor_bounds_what_is_not_preemptible(story: Story) -> None:
    root = story.queue("root", quota=1, limit=5)
    first = story.queue("first", parent=root, quota=1)
    second = story.queue("second", parent=root, quota=1)
    story.devices(3)
    for name in ("one", "two", "three"):
        story.claim(name)
    story.pod("within", first, "one", preemptibility=NON_PREEMPTIBLE)
    story.wait_bound("within")

    story.pod("beyond", second, "two", preemptibility=NON_PREEMPTIBLE)
    story.pod("preemptible", second, "three")

    sentence = story.wait_refused("beyond", "NonPreemptibleOverQuota")
    assert f'queue "{root}"' in sentence
    story.wait_bound("preemptible")
    story.wait_figures({root: 2, first: 1, second: 1})
    story.wait_figures({root: 1, first: 1, second: 0}, "usageNonPreemptible")


def test_the_limit_of_the_owner_counts_and_not_that_of_the_joiner(story: Story) -> None:
    rich, poor = story.queue("rich", limit=1), story.queue("poor", limit=0)
    story.devices(2)
    story.claim("of-the-rich", labels={QUEUE: rich})
    story.claim("of-the-poor", labels={QUEUE: poor})

    story.pod("joins-the-rich", poor, "of-the-rich")
    story.pod("joins-the-poor", rich, "of-the-poor")

    story.wait_bound("joins-the-rich")
    sentence = story.wait_refused("joins-the-poor", "OverLimit")
    assert f'queue "{poor}"' in sentence
    story.wait_figures({rich: 1, poor: 0})


def test_a_claim_that_is_charged_already_is_joined_over_a_lowered_limit(story: Story) -> None:
    vision = story.queue("vision", limit=1)
    story.devices(2)
    story.claim()
    story.claim("other")
    story.pod("first", vision)
    story.wait_bound("first")

    story.patch("queue", vision, {"spec": {"resources": [{"deviceClass": story.name, "limit": 0}]}})
    story.pod("new-charge", vision, "other")
    story.wait_refused("new-charge", "OverLimit")
    story.pod("joins", vision)

    story.wait_bound("joins")
    story.wait_figures({vision: 1})


def test_a_pod_without_a_queue_or_of_an_unknown_one_gets_no_accounted_device(
    story: Story,
) -> None:
    story.devices(1)
    story.claim()

    story.pod("of-none", "")
    story.pod("of-an-unknown", f"unknown-{story.name}")

    story.wait_refused("of-none", "NoQueue")
    story.wait_refused("of-an-unknown", "QueueNotFound")


def test_the_queue_of_a_namespace_is_that_of_its_pods_where_it_may_use_it(story: Story) -> None:
    selector = {"matchLabels": {"team": story.name}}
    ours = story.queue("ours", namespaceSelector=selector)
    story.devices(1)
    story.claim()
    story.label_namespace({QUEUE: ours})
    story.pod("first", "")
    tried: list[str] = []

    def is_refused_for_its_namespace() -> bool:
        tried.append(f"pod-{len(tried)}")
        story.pod(tried[-1], "")
        return "QueueNotAllowed: " in story.wait_refused(tried[-1], "")

    # How soon the plugin knows the labels of a namespace is to be seen from nothing else.
    story.until("the namespace may not use the queue", is_refused_for_its_namespace)

    story.label_namespace({"team": story.name})

    story.wait_bound(*tried)
    story.wait_figures({ours: 1})


def test_a_queue_without_a_selector_admits_nobody_until_it_is_written_what_the_refusal_says(
    story: Story,
) -> None:
    shut = story.queue("shut", namespaceSelector=None)
    story.devices(1)
    story.claim()
    story.pod("first", shut)

    sentence = story.wait_refused("first", "QueueNotAllowed")
    written = f"{{matchLabels: {{kubernetes.io/metadata.name: {story.namespace}}}}}"
    assert f"spec.namespaceSelector: {written} allows this one" in sentence
    name = {"kubernetes.io/metadata.name": story.namespace}
    story.change_queue(shut, {"namespaceSelector": {"matchLabels": name}})
    story.pod("second", shut)

    story.wait_bound("first", "second")
    story.wait_figures({shut: 1})


def test_the_257th_consumer_of_a_claim_is_refused_and_told_why(story: Story) -> None:
    vision = story.queue("vision")
    story.devices(1)
    story.claim()
    story.pod("first", vision)
    story.wait_bound("first")
    reserved = story.get("claim", CLAIM)["status"]["reservedFor"]
    full = [*reserved, *(other_consumer(number) for number in range(255))]
    story.patch("claim", CLAIM, {"status": {"reservedFor": full}}, "/status")

    story.pod("beyond", vision)

    try:
        assert "has 256 consumers" in story.wait_refused("beyond", "ClaimFull")
    finally:
        # No controller would ever take the others out.
        story.patch("claim", CLAIM, {"status": {"reservedFor": reserved}}, "/status")
    story.wait_bound("beyond")
    story.wait_figures({vision: 1})


def test_a_class_says_how_many_pods_may_share_one_claim(story: Story) -> None:
    vision = story.queue("vision")
    story.devices(1)
    annotations = {"moorage.dev/max-pods-per-claim": "2"}
    story.patch("class", story.name, {"metadata": {"annotations": annotations}})
    story.claim()
    for pod in ("first", "second"):
        story.pod(pod, vision)
    story.wait_bound("first", "second")

    story.pod("third", vision)

    story.wait_refused("third", "TooManySharers")
    story.delete("pod", "first")
    story.wait_bound("third")
