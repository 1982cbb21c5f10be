"""Decides what to create and to delete so that each Instance has its brokers.

    device, what is wanted, what is stored ──plan_device──► deletions, creations, when to look again
    Configuration, all its brokers ──plan_configuration──► the same for the Service of all of them

A broker Pod stays on its node while it is as wanted, Akri's own included. One that ended, or was
made from another specification or for another Instance of the same name, is deleted, and made anew
once it is gone. Each broker that is made anew waits longer, so that a device that flaps, or a pod
that the kubelet refuses, makes no stream of pods. A Job is made once for each specification: the
Instance remembers it, so a Job that was deleted after it had finished is not run again. Once
another specification is wanted, the Instance forgets it, before the Job is deleted.

Each plan may be carried out in part: the next one continues with what is stored then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from driver.api import NodeName
from driver.brokers import bodies
from driver.brokers.bodies import Made
from driver.brokers.devices import Device
from driver.brokers.stored import Stored
from driver.brokers.workloads import Workloads
from kube.kinds import JOBS, PODS, SERVICES, TEMPLATES
from kube.resources import Resource


@dataclass(frozen=True, slots=True)
class Plan:
    """Writes, in order: deletions, creations, then the mark of the Instance.

    Attributes:
        deletes: Objects to delete at their UID.
        creates: Objects to create, the template of claims before the pods that name it.
        applies: Services to create or to change.
        ran: The revision of a Job to remember with the Instance; "" to forget it; None to leave it.
        recheck_seconds: When to plan again although nothing changes; None for never.
    """

    deletes: tuple[Stored, ...] = ()
    creates: tuple[Made, ...] = ()
    applies: tuple[Made, ...] = ()
    ran: str | None = None
    recheck_seconds: float | None = None

    @classmethod
    def deleting(cls, found: Iterable[Stored]) -> Plan:
        """The plan that deletes all of these, unless they are terminating."""
        return cls(tuple(each for each in found if not each.deleted))

    @property
    def makes(self) -> bool:
        """Whether it creates or changes anything."""
        return bool(self.creates or self.applies)


NOTHING = Plan()

Waits = Callable[[str], float]
"""How many seconds the broker of a name still waits before it is made anew; 0 for none."""


def plan_device(
    wanted: Workloads | None,
    device: Device,
    found: Collection[Stored],
    waits: Waits,
    *,
    may_create: bool = True,
) -> Plan:
    """Plan for one Instance.

    Args:
        wanted: What its Configuration wants; None for nothing.
        device: The Instance.
        found: All that is stored for an Instance of its name.
        waits: See `Waits`.
        may_create: False while the Configuration wants more brokers than it may have: those that
            exist stay.
    """
    if wanted is None:
        return _plan_nothing(device, found)
    template = _plan_template(wanted, device, _of(found, TEMPLATES), may_create=may_create)
    # A pod that comes now would get its claim from a template that is to be made anew.
    may_create = may_create and not template.deletes
    pods = _plan_pods(wanted, device, _brokers(found), waits, may_create=may_create)
    job = _plan_job(wanted, device, _of(found, JOBS), may_create=may_create)
    service = bodies.instance_service(wanted, device) if wanted.instance_service else None
    services = _plan_service(service, _of(found, SERVICES), _of(found, PODS))
    return _together(template, pods, job, services)


def _plan_nothing(device: Device, found: Iterable[Stored]) -> Plan:
    return Plan(ran="") if device.ran else Plan.deleting(found)


def plan_configuration(
    wanted: Workloads | None, found: Iterable[Stored], pods: Iterable[Stored]
) -> Plan:
    """Plan for the Service of all brokers of a Configuration.

    Args:
        wanted: What it wants; None for nothing.
        found: Its own Services that are stored.
        pods: All its broker Pods.
    """
    service = None
    if wanted is not None and wanted.configuration_service:
        service = bodies.configuration_service(wanted)
    return _plan_service(service, found, pods)


def _of(found: Iterable[Stored], resource: Resource) -> tuple[Stored, ...]:
    return tuple(each for each in found if each.resource == resource)


def _brokers(found: Collection[Stored]) -> tuple[Stored, ...]:
    """Broker Pods: those of a Job are not, though its template may give them the same labels."""
    jobs = {job.uid for job in _of(found, JOBS)}
    return tuple(pod for pod in _of(found, PODS) if pod.owner not in jobs)


def _deletable(found: Iterable[Stored]) -> tuple[Stored, ...]:
    return tuple(each for each in found if not each.deleted)


def _plan_pods(
    wanted: Workloads, device: Device, found: Sequence[Stored], waits: Waits, *, may_create: bool
) -> Plan:
    made = {node: bodies.pod(wanted, device, node) for node in device.nodes} if wanted.pod else {}
    kept = {node: pod for pod in found if (node := _stays_on(pod, made, device)) is not None}
    chosen = [*_by_progress(kept), *(node for node in made if node not in kept)]
    chosen = chosen[: device.most_pods]
    stay = {kept[node].uid for node in chosen if node in kept}
    taken = {pod.name for pod in found}
    new = [made[node] for node in chosen if node not in kept and made[node].name not in taken]
    due = [each for each in new if may_create and not waits(each.name)]
    later = [waits(each.name) for each in new if may_create and waits(each.name)]
    deletes = _deletable(pod for pod in found if pod.uid not in stay)
    return Plan(deletes, tuple(due), recheck_seconds=min(later, default=None))


def _stays_on(pod: Stored, made: dict[NodeName, Made], device: Device) -> NodeName | None:
    """The node for which a Pod is as wanted; None if it is not."""
    if pod.deleted or pod.phase == "Ended" or pod.owner != device.uid:
        return None
    nodes = (node for node, body in made.items() if pod.is_on(node) and _is_from(pod, body))
    return next(nodes, None)


def _is_from(found: Stored, made: Made) -> bool:
    return found.revision in ("", made.revision)


def _by_progress(kept: dict[NodeName, Stored]) -> list[NodeName]:
    """Nodes whose Pods run come first, so that a lowered capacity ends those that wait."""
    return sorted(kept, key=lambda node: (kept[node].phase != "Running", node))


def _plan_job(
    wanted: Workloads, device: Device, found: Sequence[Stored], *, may_create: bool
) -> Plan:
    if not wanted.job:
        return _plan_nothing(device, found)
    made = bodies.job(wanted, device)
    if device.ran not in ("", made.revision):
        return Plan(ran="")
    present = _deletable(found)
    current = [job for job in present if job.owner == device.uid and _is_from(job, made)]
    deletes = tuple(job for job in present if job not in current)
    if device.ran:
        return Plan(deletes)
    if current:
        return Plan(deletes, ran=made.revision)
    if not may_create or made.name in {job.name for job in found}:
        return Plan(deletes)
    return Plan(deletes, (made,), ran=made.revision)


def _plan_template(
    wanted: Workloads, device: Device, found: Sequence[Stored], *, may_create: bool
) -> Plan:
    made = bodies.claim_template(wanted, device)
    stays = [
        each
        for each in found
        if made and not each.deleted and each.owner == device.uid and _is_from(each, made)
    ]
    # One that is terminating is in the way, too, so it counts as one to delete.
    deletes = tuple(each for each in found if each not in stays)
    return Plan(deletes, (made,) if made and not found and may_create else ())


def _plan_service(made: Made | None, found: Iterable[Stored], pods: Iterable[Stored]) -> Plan:
    """A Service comes with the first Pod that runs, and stays until none is left, as with Akri."""
    services, present = tuple(found), [pod for pod in pods if not pod.deleted]
    if made is None or not present:
        return Plan.deleting(services)
    others = _deletable(each for each in services if each.name != made.name)
    own = next((each for each in services if each.name == made.name), None)
    runs = any(pod.phase == "Running" for pod in present)
    if own is None:
        return Plan(others, applies=(made,) if runs else ())
    return Plan(others, applies=() if _is_from(own, made) or own.deleted else (made,))


def _together(*plans: Plan) -> Plan:
    return Plan(
        tuple(chain.from_iterable(plan.deletes for plan in plans)),
        tuple(chain.from_iterable(plan.creates for plan in plans)),
        tuple(chain.from_iterable(plan.applies for plan in plans)),
        next((plan.ran for plan in plans if plan.ran is not None), None),
        min((p.recheck_seconds for p in plans if p.recheck_seconds is not None), default=None),
    )
