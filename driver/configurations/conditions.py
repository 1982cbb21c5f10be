"""Conditions of the status of a Configuration.

Verdict, holder of the name ──conditions──► Condition … ──status_body──► status to write
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from driver.api import Configuration, Problem
from driver.configurations.configurations import JsonObject, Verdict
from driver.device_ids import name_problems
from driver.discovery.details import shown
from driver.handlers.status_entries import incomplete, unread_properties, unregistered
from kube.shapes.times import timestamp

CONDITION_TYPES = frozenset(
    {
        "Accepted",
        "NameTaken",
        "DevicePlugin",
        "UniqueDevices",
        "HandlerRegistered",
        "PropertiesRead",
        "DevicesDistinct",
        "DevicesComplete",
        "BrokersReady",
    }
)
"""The conditions that Moorage writes. Other conditions of the object belong to other writers."""

DEVICES_DISTINCT = "devicesDistinct"
"""Field of a node's entry: False while another Configuration has some of the devices, too."""
LONGEST_MESSAGE = 4096

_NOT_ENFORCED = (
    "The API server does not support devices with several slots (DRAConsumableCapacity, Kubernetes"
    " 1.36): each slot is a device of its own, and one request may get several slots of one device."
)
_LEFT_ALONE = "exists and was not made by Moorage: Moorage does not change it."


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a Configuration's status, without its time of transition."""

    type: str
    status: Literal["True", "False"]
    reason: str
    message: str


def conditions(
    verdict: Verdict,
    holder: Verdict,
    *,
    classes_taken: Sequence[str] = (),
    keeps_slots: bool = True,
    own_handlers: Collection[str] = (),
) -> tuple[Condition, ...]:
    """The desired conditions of this Configuration's status; room `brokers` has a further one.

    Args:
        verdict: The Configuration.
        holder: The Configuration that holds the name; usually the same.
        classes_taken: DeviceClasses with its name, or with the name of one of its Instances, that
            Moorage did not make.
        keeps_slots: False if devices are offered through DRA and the API server drops the slots of
            a device.
        own_handlers: Names of the handlers that are built into the driver.
    """
    found = [_accepted(verdict, holder, own_handlers)]
    if holder.uid != verdict.uid:
        found.append(Condition("NameTaken", "True", "OlderConfiguration", found[0].message))
    elif classes_taken:
        sentences = (f"DeviceClass {name} {_LEFT_ALONE}" for name in classes_taken)
        message = " ".join(sentences)[:LONGEST_MESSAGE]
        found.append(Condition("NameTaken", "True", "DeviceClassExists", message))
    if verdict.configuration and (problems := tuple(name_problems(verdict.configuration))):
        message = f"The device plugin does not offer its devices. {_sentences(problems)}"
        found.append(Condition("DevicePlugin", "False", "InvalidName", message))
    if verdict.configuration and not keeps_slots and _wants_slots(verdict.configuration):
        found.append(Condition("UniqueDevices", "False", "NotEnforced", _NOT_ENFORCED))
    found.extend(_reported_by_nodes(verdict))
    return tuple(found)


def _reported_by_nodes(verdict: Verdict) -> Iterator[Condition]:
    if verdict.configuration and (missing := _unregistered(verdict)):
        yield Condition("HandlerRegistered", "False", "NotRegistered", missing)
    if unread := unread_properties(verdict.entries):
        yield Condition("PropertiesRead", "False", "NotRead", unread)
    if rivals := _rivals(verdict):
        yield Condition("DevicesDistinct", "False", "OtherConfiguration", rivals)
    if reported := incomplete(verdict.entries):
        message = reported[:LONGEST_MESSAGE]
        yield Condition("DevicesComplete", "False", "ProblemsReported", message)


def _wants_slots(configuration: Configuration) -> bool:
    return configuration.unique_devices and configuration.capacity > 1


def _accepted(verdict: Verdict, holder: Verdict, own_handlers: Collection[str]) -> Condition:
    if holder.uid != verdict.uid:
        message = f"The older Configuration {holder.namespace}/{holder.name} holds this name."
        return Condition("Accepted", "False", "NameTaken", message)
    if verdict.problems:
        message = _sentences(verdict.problems)
        return Condition("Accepted", "False", "Invalid", message[:LONGEST_MESSAGE])
    return Condition("Accepted", "True", "Valid", _discovered(verdict, own_handlers))


def _discovered(verdict: Verdict, own_handlers: Collection[str]) -> str:
    """Whether its devices are discovered. Other handlers may not be registered on every node."""
    handler = verdict.configuration.handler if verdict.configuration else ""
    if missing := _unregistered(verdict):
        return f"It is valid. {missing}"
    if incomplete(verdict.entries):
        return "Its devices are discovered, except as condition DevicesComplete says."
    if handler in own_handlers:
        return "Its devices are discovered."
    return f"Its devices are discovered where a discovery handler {shown(handler)} is registered."


def _unregistered(verdict: Verdict) -> str | None:
    if verdict.configuration is None:
        return None
    return unregistered(verdict.configuration.handler, verdict.entries)


def _rivals(verdict: Verdict) -> str:
    """Messages of nodes on which another Configuration has the same devices, cut to the limit."""
    said = ((n, e) for n, e in sorted(verdict.entries.items()) if e.get(DEVICES_DISTINCT) is False)
    return " ".join(f"{node}: {entry.get('message', '')}" for node, entry in said)[:LONGEST_MESSAGE]


def _sentences(problems: Iterable[Problem]) -> str:
    return " ".join(str(problem) for problem in problems)


def stored_condition(stored: JsonObject, name: str) -> Condition | None:
    """The condition of a type in a stored `status`; None if it has none."""
    found = next((c for c in stored.get("conditions", ()) if c["type"] == name), None)
    if found is None:
        return None
    return Condition(name, found["status"], found["reason"], found["message"])


def status_body(
    verdict: Verdict, wanted: tuple[Condition, ...], stored: JsonObject, *, now: datetime
) -> JsonObject | None:
    """The status to write; None if the stored status has the same conditions.

    Args:
        verdict: The Configuration.
        wanted: All its desired conditions.
        stored: The stored `status`. A condition with the same status keeps its time of transition.
        now: The time of transition of conditions that change.
    """
    before = {c["type"]: c for c in stored.get("conditions", ()) if c["type"] in CONDITION_TYPES}
    after = [_condition_body(c, before.get(c.type), verdict.generation, now) for c in wanted]
    if {c["type"]: c for c in after} == before:
        return None
    return {"observedGeneration": verdict.generation, "conditions": after}


def _condition_body(
    condition: Condition, before: JsonObject | None, generation: int, now: datetime
) -> JsonObject:
    unchanged = before is not None and before["status"] == condition.status
    since = before["lastTransitionTime"] if before and unchanged else timestamp(now)
    return {**asdict(condition), "observedGeneration": generation, "lastTransitionTime": since}
