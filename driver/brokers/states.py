"""The state of a Configuration's brokers, as its condition `BrokersReady`.

what it wants, its devices, what is stored ──brokers_condition──► one condition, or none
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from driver.api import Problem
from driver.brokers.counts import Count
from driver.brokers.stored import Stored
from driver.brokers.workloads import Workloads
from driver.configurations.conditions import LONGEST_MESSAGE, Condition
from kube.kinds import JOBS, PODS
from kube.words import number_of, some_of

BROKERS_READY = "BrokersReady"
_MOST_REASONS = 3


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why no broker is made, or no further one.

    Attributes:
        reason: The reason of the condition.
    """

    reason: str
    message: str

    @property
    def condition(self) -> Condition:
        return Condition(BROKERS_READY, "False", self.reason, self.message[:LONGEST_MESSAGE])


AKRI_RUNS = Blocked(
    "AkriControllerRuns",
    "Akri's own controller runs in this cluster and makes brokers, so Moorage makes none. Remove"
    " it: with Akri's chart, set controller.enabled=false.",
)


def not_allowed(namespace: str, allowed: Collection[str]) -> Blocked | None:
    """Why brokers may not run in a namespace; None if they may.

    Args:
        namespace: Of the Configuration.
        allowed: The namespaces that the administrator lists; `*` is all of them.
    """
    if "*" in allowed or namespace in allowed:
        return None
    sentence = (
        f"Brokers, Jobs and Services are not made in namespace {namespace}. An administrator lists"
        " the namespaces: brokers.namespaces in the chart's values."
    )
    return Blocked("NotAllowed", sentence)


def invalid(problems: Iterable[Problem]) -> Blocked | None:
    """Why the workloads of a Configuration cannot be made; None without problems."""
    sentences = " ".join(map(str, problems))
    return Blocked("Invalid", sentences) if sentences else None


def brokers_of(wanted: Workloads, devices: Count) -> int:
    """How many Pods or Jobs a Configuration's devices are to have."""
    if wanted.job:
        return devices.devices
    return devices.most_pods if wanted.pod else 0


def too_many(wanted: Workloads, devices: Count) -> Blocked | None:
    """Why no further broker is made for a Configuration; None if all of them may be."""
    count = brokers_of(wanted, devices)
    if count <= wanted.most:
        return None
    sentence = (
        f"{number_of(count, 'broker')} would run, and {wanted.most} are the most; no further one"
        f" is made. If so many are meant, set spec.maxBrokers: {count}."
    )
    return Blocked("TooManyBrokers", sentence)


def brokers_condition(
    wanted: Workloads,
    devices: Count,
    found: Iterable[Stored],
    refusals: Collection[str],
) -> Condition:
    """The condition of a Configuration that wants brokers or Services, and may have them.

    Args:
        wanted: What it wants.
        devices: Its devices in numbers.
        found: All that is stored of it.
        refusals: What the API server said to writes that failed.
    """
    if blocked := too_many(wanted, devices):
        return blocked.condition
    if refusals:
        message = f"The API server refuses to make some of them: {some_of(sorted(refusals))}"
        return Blocked("Refused", message).condition
    present = [each for each in found if not each.deleted]
    if wanted.job:
        return _of_jobs([each for each in present if each.resource == JOBS])
    pods = [each for each in present if each.resource == PODS]
    return _of_pods(brokers_of(wanted, devices), pods)


def _of_jobs(jobs: Collection[Stored]) -> Condition:
    ended = sum(job.phase == "Ended" for job in jobs)
    message = f"{_number_that(len(jobs), 'Job', 'exist')}, {ended} of them ended."
    return Condition(BROKERS_READY, "True", "JobsMade", message)


def _of_pods(count: int, pods: Collection[Stored]) -> Condition:
    running = sum(pod.phase == "Running" for pod in pods)
    if running >= count:
        message = f"{_number_that(running, 'broker', 'run')}."
        return Condition(BROKERS_READY, "True", "AllRun", message)
    message = f"{running} of {number_of(count, 'broker')} run. {_waiting(pods)}".rstrip()
    return Condition(BROKERS_READY, "False", "Waiting", message[:LONGEST_MESSAGE])


def _waiting(pods: Iterable[Stored]) -> str:
    """How many Pods wait, for the most frequent reasons."""
    reasons = Counter(pod.waits for pod in pods if pod.phase == "Pending" and pod.waits)
    said = (
        f"{_number_that(count, 'broker', 'wait')}: {reason.rstrip('.')}."
        for reason, count in sorted(reasons.items(), key=lambda each: (-each[1], each[0]))
    )
    return " ".join(list(said)[:_MOST_REASONS])


def _number_that(count: int, noun: str, verb: str) -> str:
    """`1 broker runs`, `2 brokers run`."""
    return f"{number_of(count, noun)} {verb}{'s' if count == 1 else ''}"
