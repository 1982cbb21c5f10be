"""GPU memory of a vendor's devices is guaranteed, and charged as it was allocated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tests.e2e import vendor_devices
from tests.e2e.sharing.stories import Story
from tests.e2e.vendor_hardware import Slice, divisible_gpus, partitionable_gpus
from tests.e2e.vendor_stories import one

NODE = "node-a"
MEMORY = "gpu-memory"
GATE = {"name": "moorage.dev/quota"}


@contextmanager
def gpus(story: Story, *slices: Slice) -> Iterator[None]:
    """A driver of this story's name on a node with a kubelet; its class has the same name."""
    with vendor_devices.running(story.cluster, story.driver, slices, NODE):
        yield
        story.end_pods()


def memory(story: Story, quota: str | int = 0, limit: str | int = -1) -> dict[str, Any]:
    """An entry that counts the memory of this vendor's devices, whatever class is asked for."""
    measured = {"name": MEMORY, "driver": story.driver, "measure": {"capacity": "memory"}}
    return {"resources": [{**measured, "quota": quota, "limit": limit}]}


def teams(story: Story, limit: str | int) -> tuple[str, str]:
    """A queue with a quota of 40Gi and one without, below one with a limit."""
    root = story.queue("root", **memory(story, "80Gi", limit))
    return (
        story.queue("mine", parent=root, **memory(story, "40Gi")),
        story.queue("robots", parent=root, **memory(story)),
    )


def claim(story: Story, name: str, *requests: dict[str, Any]) -> None:
    spec = {"devices": {"requests": list(requests)}}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    story.create("claim", {**kind, "metadata": {"name": name}, "spec": spec})


def part(story: Story, much: str) -> dict[str, Any]:
    return one("gpu", story.driver, memory=much)


def use(story: Story, name: str, queue: str, much: str) -> None:
    claim(story, name, part(story, much))
    story.pod(name, queue, name)
    story.wait_running(name)


def uses(story: Story, queue: str, amount: str) -> bool:
    usage = story.status(f"{queue}-{story.name}").get("usage", {})
    return bool(usage.get(MEMORY) == amount)


def wait_used(story: Story, **amounts: str) -> None:
    for queue, amount in amounts.items():
        story.until(f"{queue} uses {amount}", partial(uses, story, queue, amount))


def test_a_queue_below_its_quota_of_memory_gets_it_back_and_no_more_goes(story: Story) -> None:
    with gpus(story, *divisible_gpus("gpu-0", "gpu-1")):
        mine, robots = teams(story, "80Gi")
        use(story, "r1", robots, "40Gi")
        use(story, "r2", robots, "40Gi")

        claim(story, "w", part(story, "40Gi"))
        story.pod("w", mine, "w", schedulingGates=[GATE])

        story.wait_running("w")
        (gone,) = {"r1", "r2"} - story.bound()
        assert f"within the share of {MEMORY} that is guaranteed" in story.wait_told(
            gone, "Reclaimed"
        )
        wait_used(story, mine="40Gi", robots="40Gi")


def test_a_part_of_a_device_is_freed_where_no_limit_but_the_device_is_full(story: Story) -> None:
    with gpus(story, *divisible_gpus("gpu-0")):
        mine, robots = teams(story, -1)
        use(story, "r1", robots, "40Gi")
        use(story, "r2", robots, "40Gi")

        claim(story, "w", part(story, "30Gi"))
        story.pod("w", mine, "w")

        story.wait_running("w")
        assert len({"r1", "r2"} & story.bound()) == 1
        wait_used(story, mine="30Gi", robots="40Gi")


def test_a_whole_gpu_goes_for_a_partition_of_it(story: Story) -> None:
    with gpus(story, *partitionable_gpus("gpu-0")):
        mine, robots = teams(story, -1)
        claim(story, "whole", one("gpu", story.driver, kind(story, "gpu")))
        story.pod("whole", robots, "whole")
        story.wait_running("whole")

        claim(story, "slice", one("gpu", story.driver, kind(story, "partition")))
        story.change_queue(mine, memory(story, "80Gi"))
        story.pod("slice", mine, "slice")

        story.wait_running("slice")
        assert "whole" not in story.bound()


def kind(story: Story, of: str) -> str:
    """CEL that selects GPUs of a kind; of partitions the small ones."""
    own = f'device.attributes["{story.driver}"]'
    small = f' && {own}.profile == "1g.10gb"' if of == "partition" else ""
    return f'{own}.type == "{of}"{small}'


def whole_or_slice(story: Story) -> dict[str, Any]:
    """A request for a whole GPU, else a partition of 10Gi."""
    choices = [
        {"name": name, **one("gpu", story.driver, kind(story, of))["exactly"]}
        for name, of in (("whole", "gpu"), ("slice", "partition"))
    ]
    return {"name": "gpu", "firstAvailable": choices}


def test_a_pod_that_gets_a_slice_in_place_of_a_gpu_is_charged_for_the_slice(story: Story) -> None:
    with gpus(story, *partitionable_gpus("gpu-0")):
        others = story.queue("others", **memory(story))
        mine = story.queue("mine", **memory(story, limit="80Gi"))
        claim(story, "first", one("gpu", story.driver, kind(story, "partition")))
        story.pod("first", others, "first")
        story.wait_running("first")

        claim(story, "either", whole_or_slice(story))
        story.pod("either", mine, "either")

        story.wait_running("either")
        wait_used(story, mine="10Gi", others="10Gi")


def test_a_gpu_that_does_not_fit_is_refused_at_bind_by_its_name(story: Story) -> None:
    """kube-scheduler prefers the whole GPU, for which the queue has no room."""
    with gpus(story, *partitionable_gpus("gpu-0")):
        mine = story.queue("mine", **memory(story, limit="40Gi"))
        claim(story, "either", whole_or_slice(story))

        story.pod("either", mine, "either")

        why = story.wait_condition("either", "with device")
        assert f"{story.driver}/{NODE}/gpu-0 does not fit" in why
        assert f"0 {MEMORY}, 80Gi more would pass its limit of 40Gi" in why
        assert "either" not in story.bound()
