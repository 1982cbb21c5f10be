"""Conditions: what the status of a Configuration says of it.

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
from driver.handlers.reports import incomplete, unread_properties, unregistered
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
        "FieldsIgnored",
    }
)
"""The conditions that Moorage writes; others on the object are somebody else's."""

DEVICES_DISTINCT = "devicesDistinct"
"""Of a node's entry: False while devices are another Configuration's, too."""
LONGEST_MESSAGE = 4096

_NOT_ENFORCED = (
    "The API server knows no devices with several slots (DRAConsumableCapacity, Kubernetes 1.36): "
    "each slot is a device of its own, and one request may be given several of one device."
)
_LEFT_ALONE = "exists and was not made by Moorage: it is left alone."


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a Configuration's status, but for its time of transition."""

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
    """The conditions that this Configuration's status should show.

    Args:
        verdict: The Configuration.
        holder: Who holds its name; the same, as a rule.
        classes_taken: DeviceClasses of its name, or of one of its Instances, that Moorage did not
            make.
        keeps_slots: False where devices are offered through DRA and the API server drops that one
            of them has several slots.
        own_handlers: Names of those that nodes have without anybody's doing.
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
    found.extend(_told_by_nodes(verdict))
    if verdict.ignored:
        message = f"{', '.join(verdict.ignored)}: kept, and not acted on by Moorage."
        found.append(Condition("FieldsIgnored", "True", "NotSupported", message))
    return tuple(found)


def _told_by_nodes(verdict: Verdict) -> Iterator[Condition]:
    if verdict.configuration and (missing := _unregistered(verdict)):
        yield Condition("HandlerRegistered", "False", "NotRegistered", missing)
    if unread := unread_properties(verdict.entries):
        yield Condition("PropertiesRead", "False", "NotRead", unread)
    if rivals := _rivals(verdict):
        yield Condition("DevicesDistinct", "False", "OtherConfiguration", rivals)
    if told := incomplete(verdict.entries):
        message = told[:LONGEST_MESSAGE]
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
    """Whether its devices are; who registers as a handler of others can not be known here."""
    handler = verdict.configuration.handler if verdict.configuration else ""
    if missing := _unregistered(verdict):
        return f"It is valid. {missing}"
    if incomplete(verdict.entries):
        return "Its devices are discovered, but for what condition DevicesComplete tells."
    if handler in own_handlers:
        return "Its devices are discovered."
    return f"Its devices are discovered where a discovery handler {shown(handler)} is registered."


def _unregistered(verdict: Verdict) -> str | None:
    if verdict.configuration is None:
        return None
    return unregistered(verdict.configuration.handler, verdict.entries)


def _rivals(verdict: Verdict) -> str:
    """What nodes say that find devices of it through another Configuration, too; the first do."""
    said = ((n, e) for n, e in sorted(verdict.entries.items()) if e.get(DEVICES_DISTINCT) is False)
    return " ".join(f"{node}: {entry.get('message', '')}" for node, entry in said)[:LONGEST_MESSAGE]


def _sentences(problems: Iterable[Problem]) -> str:
    return " ".join(str(problem) for problem in problems)


def status_body(
    verdict: Verdict, wanted: tuple[Condition, ...], stored: JsonObject, *, now: datetime
) -> JsonObject | None:
    """The status to write, or None where the stored one says the same already.

    Args:
        verdict: The Configuration whose status it is.
        wanted: All its conditions.
        stored: `status` as it is; a condition that keeps its status keeps its time of transition.
        now: The time of transition of those that change.
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
