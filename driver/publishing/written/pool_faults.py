"""Faults of a pool that the API server, which sees one slice at a time, cannot find.

kube-scheduler takes no device of such a pool, so it is refused before anything is written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from driver.publishing.written.resource_slices import (
    NodeScope,
    SliceContent,
    SliceDevice,
    counters_of,
)
from driver.publishing.written.shards import DeviceGroup


def fault_of_groups(groups: Sequence[DeviceGroup]) -> str | None:
    """What is wrong with the groups of a pool, as a clause; None if nothing is."""
    scopes = {group.scope for group in groups}
    if not scopes:
        return "it has no group of devices, so nothing says which nodes it is for"
    if len(scopes) > 1 and any(isinstance(scope, NodeScope) for scope in scopes):
        return "it mixes the devices of one node with devices of others"
    return _duplicate_device(device for group in groups for device in group.devices)


def fault_of_contents(contents: Sequence[SliceContent]) -> str | None:
    """What is wrong with the slices of a pool, as a clause; None if nothing is."""
    if not contents:
        return "it has no slice; an empty pool has one without devices"
    devices = [device for content in contents for device in content.devices]
    return _duplicate_device(devices) or next(_counter_faults(contents, devices), None)


def _duplicate_device(devices: Iterable[SliceDevice]) -> str | None:
    for name, times in Counter(device.name for device in devices).items():
        if times > 1:
            return f'device "{name}" is in it {times} times'
    return None


def _counter_faults(
    contents: Iterable[SliceContent], devices: Iterable[SliceDevice]
) -> Iterator[str]:
    counters: dict[str, Mapping[str, Any]] = {}
    for content in contents:
        for counter_set in counters_of(content):
            if counter_set["name"] in counters:
                yield f'counter set "{counter_set["name"]}" is in it more than once'
            counters[counter_set["name"]] = counter_set.get("counters", {})
    for device in devices:
        yield from _consumption_faults(device, counters)


def _consumption_faults(
    device: SliceDevice, counters: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    if '"consumesCounters"' not in device.text:  # true of nearly all, and cheaper than parsing
        return
    for consumption in json.loads(device.text).get("consumesCounters", ()):
        name = consumption["counterSet"]
        if name not in counters:
            yield f'device "{device.name}" consumes counter set "{name}", which is not in it'
        for counter in sorted(consumption.get("counters", {}).keys() - counters.get(name, {})):
            yield (
                f'device "{device.name}" consumes counter "{counter}", '
                f'which is not in counter set "{name}"'
            )
