"""Plan a pool of 1,000 devices after one of them changed.

The baseline does nothing but write the same devices as canonical JSON once. Run with
`python -m bench.pools_plan`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

from driver.api import NodeName
from driver.publishing.apply.pools import DesiredPool, PoolPlan, plan_pool
from driver.publishing.apply.resource_slices import (
    NodeScope,
    SliceDevice,
    StoredSlice,
    slice_device,
    stored_slice,
)
from driver.publishing.apply.shards import DeviceGroup

DEVICES = 1000
ROUNDS = 200
SCOPE = NodeScope(NodeName("node-a"))


def body(number: int, state: str = "as-it-was") -> dict[str, Any]:
    properties = {f"PROPERTY_{index}": f"value-{index}-of-{number}" for index in range(8)}
    texts = {"configuration": "cam", "instance": f"cam-{number:06x}", "STATE": state, **properties}
    return {
        "name": f"cam-{number:06x}",
        "attributes": {name: {"string": text} for name, text in texts.items()},
    }


def pool(devices: tuple[SliceDevice, ...]) -> DesiredPool:
    return DesiredPool(name="node-a", driver="moorage.dev", groups=(DeviceGroup(SCOPE, devices),))


def plan(desired: DesiredPool, stored: list[StoredSlice]) -> PoolPlan:
    found = plan_pool(desired, stored)
    assert isinstance(found, PoolPlan), found
    return found


def stored_after(created: PoolPlan) -> list[StoredSlice]:
    bodies = [json.loads(json.dumps(create.body)) for create in created.creates]
    for number, obj in enumerate(bodies):
        name = f"{obj['metadata']['generateName']}x{number}"
        obj["metadata"] |= {"name": name, "uid": name, "resourceVersion": "1"}
    return [stored_slice(obj) for obj in bodies]


def milliseconds(act: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        act()
        times.append(perf_counter() - start)
    return median(times) * 1000


def main() -> None:
    bodies = [body(number) for number in range(DEVICES)]
    devices = tuple(map(slice_device, bodies))
    stored = stored_after(plan(pool(devices), []))
    changed_body = body(DEVICES // 2, "changed")
    desired = pool((*devices[: DEVICES // 2], slice_device(changed_body), *devices[501:]))
    assert len(plan(desired, stored).writes) == len(plan(desired, stored).updates) == 1

    baseline = milliseconds(lambda: json.dumps(bodies, sort_keys=True, separators=(",", ":")))
    planning = milliseconds(lambda: plan(desired, stored))
    parsing = milliseconds(lambda: tuple(map(slice_device, bodies)))

    print(f"{DEVICES} devices in {len(stored)} slices, one changed; medians of {ROUNDS}")
    print(f"baseline: canonical JSON of the devices {baseline:7.2f} ms")
    for name, time in (("plan_pool", planning), ("slice_device of every device", parsing)):
        print(f"{name:39} {time:7.2f} ms  ratio {time / baseline:.2f}")


if __name__ == "__main__":
    main()
