"""Killed at any moment: one owner, one binding, one charge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from local_cluster.api import ApiError
from tests.e2e.sharing.stories import Story
from tests.e2e.webhook.installation import filled_in


def test_killed_between_filter_and_bind_the_plugin_binds_after_its_start(story: Story) -> None:
    vision, robots = story.queue("vision"), story.queue("robots")
    story.devices(1)
    story.claim()
    with story.holding("bind", "first"):
        story.pod("first", vision)
        story.until("it is about to be bound", lambda: story.is_held("bind", "first"))

        story.plugin.kill()
        story.plugin.wait_ready()

    story.wait_bound("first")
    assert (story.owner(), story.owner_pod()) == (vision, story.uid("pod", "first"))
    story.wait_figures({vision: 1, robots: 0})


def test_killed_between_label_and_binding_the_pod_is_bound_once_and_its_queue_owns(
    story: Story,
) -> None:
    vision, robots = story.queue("vision"), story.queue("robots", limit=0)
    story.devices(1)
    story.claim()
    with story.bindings_stopped("request.name == 'first'") as gate:
        story.pod("first", vision)
        story.until("its binding is under way", lambda: "first" in gate.stopped)
        assert (story.owner(), story.owner_pod()) == (vision, story.uid("pod", "first"))

        story.plugin.kill()

        story.pod("foreign", robots)
        story.plugin.wait_ready()
        assert story.node_of("first") == ""
    story.wait_bound("first", "foreign")
    assert (story.owner(), story.owner_pod()) == (vision, story.uid("pod", "first"))
    story.wait_figures({vision: 1, robots: 0})
    assert story.wait_bindings("first") == 1


def test_an_api_server_restarted_in_the_middle_of_a_bind_has_one_binding_and_one_owner(
    story: Story,
) -> None:
    vision, robots = story.queue("vision"), story.queue("robots", limit=0)
    story.devices(1)
    story.claim()
    apiserver = story.cluster.part("kube-apiserver")
    with story.bindings_stopped("request.name == 'first'") as gate:
        story.pod("first", vision)
        story.until("its binding is under way", lambda: "first" in gate.stopped)
        apiserver.kill()
        gate.allow()
        apiserver.start()

    story.wait_bound("first")
    story.pod("foreign", robots)
    story.wait_bound("foreign")
    assert (story.owner(), story.owner_pod()) == (vision, story.uid("pod", "first"))
    story.wait_figures({vision: 1, robots: 0})
    assert story.wait_bindings("first") == 1


def test_a_kube_scheduler_killed_before_the_bind_comes_back_and_the_owner_is_the_same(
    story: Story,
) -> None:
    vision, robots = story.queue("vision"), story.queue("robots", limit=0)
    story.devices(1)
    story.claim()
    scheduler = story.cluster.part("kube-scheduler-moorage")
    with story.holding("bind", "first"):
        story.pod("first", vision)
        story.until("it is about to be bound", lambda: story.is_held("bind", "first"))
        scheduler.kill()
        story.pod("foreign", robots)
        scheduler.start()

        story.wait_bound("foreign")

        assert (story.owner(), story.owner_pod()) == (vision, story.uid("pod", "first"))
    story.wait_bound("first")
    story.wait_figures({vision: 1, robots: 0})


def test_with_the_plugin_down_only_pods_of_its_scheduler_wait(story: Story) -> None:
    vision = story.queue("vision")
    story.devices(1)
    story.claim()
    with story.plugin.down():
        story.plain_pod("unconcerned", schedulerName="default-scheduler")
        story.pod("waiting", vision)

        story.wait_bound("unconcerned")

        story.wait_condition("waiting", "code 502")
    story.wait_bound("waiting")
    story.wait_figures({vision: 1})


def test_what_happened_while_the_plugin_was_down_is_charged_when_it_is_back(
    story: Story,
) -> None:
    vision, robots = story.queue("vision"), story.queue("robots")
    story.devices(2)
    for claim in ("ends", "stays"):
        story.claim(claim)
        story.pod(f"of-{claim}", vision, claim)
        story.wait_bound(f"of-{claim}")
    story.wait_figures({vision: 2})

    with story.plugin.down():
        story.delete("pod", "of-ends")
        story.until("the claim is deallocated", lambda: not story.is_allocated("ends"))
        assert story.owner("ends") == vision

    story.wait_figures({vision: 1, robots: 0})
    story.wait_owner("", "ends")
    story.pod("next", robots, "ends")
    story.wait_bound("next")
    story.wait_figures({vision: 1, robots: 1})


def test_with_all_of_moorage_down_pods_that_ask_for_no_device_are_scheduled_as_ever(
    story: Story,
) -> None:
    with story.plugin.down(), _webhook_down(story):
        story.plain_pod("unconcerned", schedulerName="default-scheduler")
        story.wait_bound("unconcerned")


@contextmanager
def _webhook_down(story: Story) -> Iterator[None]:
    """The API server asks a webhook that nobody runs; pods that ask for plugins show it."""
    certificate = story.cluster.issue_certificate("moorage-webhook")
    nobody = f"https://{story.cluster.host_address}:9"
    story.create("webhook", filled_in(certificate.ca, nobody))

    def is_refused() -> bool:
        try:
            story.plain_pod(
                "concerned",
                schedulerName="default-scheduler",
                resources={"limits": {"akri.sh/camera": "1"}},
            )
        except ApiError as error:
            return "failed calling webhook" in str(error)
        story.delete("pod", "concerned")
        return False

    story.until("the webhook is asked", is_refused)
    yield
    story.delete("webhook", "moorage")
