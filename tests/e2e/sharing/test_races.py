"""Several pods, one claim, and no order that anybody promised."""

from __future__ import annotations

from tests.e2e.sharing import objects
from tests.e2e.sharing.stories import CLAIM, NODE, OTHER_NODE, Story


def test_a_foreign_bind_that_is_handled_first_does_not_make_an_owner(story: Story) -> None:
    vision, robots = story.queue("vision"), story.queue("robots", limit=0)
    story.devices(1)
    story.claim()
    with story.holding("bind", "first"):
        _past_prebind(story, "first", vision)

        story.pod("foreign", robots)

        story.wait_bound("foreign")
        assert story.node_of("first") == ""
        assert (story.owner(), story.owner_pod()) == (vision, story.uid("pod", "first"))
    story.wait_bound("first")
    story.wait_figures({vision: 1, robots: 0})


def test_nor_does_it_when_the_plugin_was_started_anew_in_between(story: Story) -> None:
    vision, robots = story.queue("vision"), story.queue("robots", limit=0)
    story.devices(1)
    story.claim()
    with story.holding("bind", "first"), story.holding("bind", "foreign"):
        _past_prebind(story, "first", vision)
        _past_prebind(story, "foreign", robots)
        assert story.owner() == ""
        story.plugin.kill()
        story.plugin.wait_ready()

        story.extender.let_go("bind", story.key("foreign"))

        story.wait_bound("foreign")
        assert (story.owner(), story.owner_pod()) == (vision, story.uid("pod", "first"))
    story.wait_bound("first")
    story.wait_figures({vision: 1, robots: 0})


def test_two_pods_of_two_queues_bound_in_reverse_order_agree_on_the_owner(story: Story) -> None:
    vision, robots = story.queue("vision", limit=1), story.queue("robots", limit=1)
    story.devices(1)
    story.claim()
    with story.holding("bind", "first"), story.holding("bind", "second"):
        _past_prebind(story, "first", vision)
        _past_prebind(story, "second", robots)
        assert story.consumers() == ["first", "second"]
        node = story.allocated_node()

        answers = [
            story.extender.ask("bind", _bind_arguments(story, pod, node))
            for pod in ("second", "first")
        ]

        assert answers == [{"Error": ""}, {"Error": ""}]
        story.wait_bound("first", "second")
    assert (story.owner(), story.owner_pod()) == (vision, story.uid("pod", "first"))
    story.wait_figures({vision: 1, robots: 0})


def test_a_pod_that_is_bound_twice_is_bound_once(story: Story) -> None:
    vision = story.queue("vision")
    story.devices(1)
    story.claim()
    story.pod("first", vision)
    story.wait_bound("first")

    again = story.extender.ask("bind", _bind_arguments(story, "first", NODE))
    elsewhere = story.extender.ask("bind", _bind_arguments(story, "first", OTHER_NODE))

    # kube-scheduler would take the reservations back of a pod that runs.
    assert [again, elsewhere] == [{"Error": ""}, {"Error": ""}]
    assert story.node_of("first") == NODE
    story.wait_figures({vision: 1})


def test_when_the_deciding_pod_goes_before_its_bind_the_next_one_owns(story: Story) -> None:
    vision, robots = story.queue("vision"), story.queue("robots")
    story.devices(1)
    story.claim()
    with story.holding("bind", "first"), story.holding("bind", "second"):
        _past_prebind(story, "first", vision)
        _past_prebind(story, "second", robots)
        story.delete("pod", "first")
        # The plugin has heard of it: the claim is asked for by the other queue now.
        story.wait_figures({vision: 0, robots: 1}, "requested")

        story.extender.let_go("bind", story.key("second"))

        story.wait_bound("second")
    assert (story.owner(), story.owner_pod()) == (robots, story.uid("pod", "second"))
    story.wait_figures({vision: 0, robots: 1})


def test_fifty_pods_of_five_queues_bind_at_once_and_one_queue_is_charged_once(
    story: Story,
) -> None:
    queues = [story.queue(f"team-{number}", limit=1) for number in range(5)]
    story.devices(1)
    story.claim()
    pods = [f"pod-{number}" for number in range(50)]

    for number, pod in enumerate(pods):
        story.pod(pod, queues[number % 5])

    story.wait_bound(*pods)
    owner = story.owner()
    assert owner in queues
    assert story.owner_writes() == 1
    story.wait_figures({queue: int(queue == owner) for queue in queues})
    story.wait_shared_out(owner)


def test_two_sharers_of_one_unallocated_claim_fit_on_a_node_with_one_device(story: Story) -> None:
    vision, robots = story.queue("vision", limit=1), story.queue("robots", limit=1)
    story.devices(1)
    story.claim()
    with story.holding("bind", "first"):
        story.pod("first", vision)
        story.pod("second", robots)
        story.until("both are past PreBind", lambda: len(story.consumers()) == 2)
    story.wait_bound("first", "second")

    assert story.node_of("first") == story.node_of("second") == NODE
    figures = {queue: int(queue == story.owner()) for queue in (vision, robots)}
    assert sum(figures.values()) == 1
    story.wait_figures(figures)


def test_a_claim_that_another_allocates_between_filter_and_bind_keeps_that_device(
    story: Story,
) -> None:
    vision = story.queue("vision", limit=1)
    story.devices(1, node=NODE)
    story.devices(1, node=OTHER_NODE)
    story.claim()
    with story.holding("filter", "first"):
        story.pod("first", vision, affinity=objects.preferring(NODE))
        story.until("it is filtered", lambda: story.is_held("filter", "first"))

        story.allocate(CLAIM, OTHER_NODE)

    story.wait_bound("first")
    assert story.node_of("first") == OTHER_NODE
    (result,) = story.get("claim", CLAIM)["status"]["allocation"]["devices"]["results"]
    assert result["pool"] == OTHER_NODE
    assert story.owner() == vision
    story.wait_figures({vision: 1})


def test_a_stale_label_with_two_pods_past_prebind_gets_its_right_owner(story: Story) -> None:
    vision, robots, former = (story.queue(name) for name in ("vision", "robots", "former"))
    story.devices(1)
    story.claim()
    with story.holding("bind", "first"), story.holding("bind", "second"):
        _past_prebind(story, "first", vision)
        _past_prebind(story, "second", robots)
        story.as_binder_mark_owner(CLAIM, former, owner_pod="00000000-dead")

        story.extender.let_go("bind", story.key("second"))

        story.wait_bound("second")
    story.wait_bound("first")
    assert (story.owner(), story.owner_pod()) == (vision, story.uid("pod", "first"))
    story.wait_figures({vision: 1, robots: 0, former: 0})


def test_a_claim_whose_binding_is_refused_after_the_owner_was_written_is_free_again(
    story: Story,
) -> None:
    vision, robots = story.queue("vision"), story.queue("robots")
    story.devices(1)
    story.claim()
    with story.bindings_stopped("request.name == 'first'") as gate:
        story.pod("first", vision)
        story.until("its binding is under way", lambda: "first" in gate.stopped)
        assert story.owner() == vision

        gate.refuse()

        story.wait_condition("first", "the test refuses this binding")
        story.wait_owner("")
        story.delete("pod", "first")
    story.pod("second", robots)
    story.wait_bound("second")
    story.wait_figures({vision: 0, robots: 1})


def _past_prebind(story: Story, pod: str, queue: str) -> None:
    """Create a pod whose bind is held, and wait until kube-scheduler asks for it."""
    story.pod(pod, queue)
    story.until(f"{pod} is about to be bound", lambda: story.is_held("bind", pod))


def _bind_arguments(story: Story, pod: str, node: str) -> dict[str, str]:
    uid = story.uid("pod", pod)
    return {"PodName": pod, "PodNamespace": story.namespace, "PodUID": uid, "Node": node}
