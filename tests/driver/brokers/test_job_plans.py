"""Plans for one Instance: its Job, once for each specification."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from driver.brokers import bodies
from driver.brokers.plans import Plan
from driver.brokers.stored import Phase
from driver.brokers.workloads import Workloads
from kube.kinds import PODS
from tests.driver.brokers.broker_builders import (
    ONE_NODE,
    a_broker,
    a_job,
    a_job_spec,
    planned,
    some_jobs,
    some_workloads,
)

PODS_WANTED, JOBS_WANTED = some_workloads(), some_jobs()
LATER_JOBS = some_jobs(job=a_job_spec("2"), generation=4)
QUEUE = {"kueue.x-k8s.io/queue-name": "vision"}
AKRIS: dict[str, Any] = {"revision": ""}


def test_a_job_is_made_once_and_remembered() -> None:
    made = bodies.job(JOBS_WANTED, ONE_NODE)

    assert planned(JOBS_WANTED, ONE_NODE) == Plan(creates=(made,), ran=made.revision)


def test_a_job_that_was_not_remembered_is_remembered() -> None:
    job = a_job(JOBS_WANTED, ONE_NODE)

    assert planned(JOBS_WANTED, ONE_NODE, job) == Plan(ran=job.revision)
    assert planned(JOBS_WANTED, replace(ONE_NODE, ran=job.revision), job) == Plan()


def test_a_job_that_ends_before_it_was_remembered_is_made_again_once_it_is_gone() -> None:
    job = a_job(JOBS_WANTED, ONE_NODE, deleted=True)

    assert planned(JOBS_WANTED, ONE_NODE, job) == Plan()


def test_a_job_that_was_deleted_is_not_made_again() -> None:
    ran = replace(ONE_NODE, ran=bodies.job(JOBS_WANTED, ONE_NODE).revision)

    assert planned(JOBS_WANTED, ran) == Plan()
    assert planned(replace(JOBS_WANTED, generation=4), ran) == Plan()


def test_akris_own_job_is_kept_and_remembered() -> None:
    job = a_job(JOBS_WANTED, ONE_NODE, phase="Ended", **AKRIS)

    plan = planned(JOBS_WANTED, ONE_NODE, job)

    assert plan == Plan(ran=bodies.job(JOBS_WANTED, ONE_NODE).revision)


@pytest.mark.parametrize("phase", ["Running", "Ended"])
def test_a_job_of_another_specification_is_forgotten_and_gives_way_to_a_new_one(
    phase: Phase,
) -> None:
    job = a_job(JOBS_WANTED, ONE_NODE, phase=phase)
    made = bodies.job(LATER_JOBS, ONE_NODE)

    forgotten = planned(LATER_JOBS, replace(ONE_NODE, ran=job.revision), job)

    assert forgotten == Plan(ran="")
    assert planned(LATER_JOBS, ONE_NODE, job) == Plan((job,), (made,), ran=made.revision)


@pytest.mark.parametrize("wanted", [None, PODS_WANTED])
def test_a_job_that_is_no_longer_wanted_is_forgotten_before_it_is_deleted(
    wanted: Workloads | None,
) -> None:
    job = a_job(JOBS_WANTED, ONE_NODE)

    assert planned(wanted, replace(ONE_NODE, ran=job.revision), job).ran == ""
    assert planned(wanted, replace(ONE_NODE, ran=job.revision), job).deletes == ()
    assert planned(wanted, ONE_NODE, job).deletes == (job,)


def test_a_finished_job_of_an_older_generation_stays_while_the_specification_is_the_same() -> None:
    job = a_job(JOBS_WANTED, ONE_NODE, phase="Ended")
    ran = replace(ONE_NODE, ran=job.revision)

    assert planned(replace(JOBS_WANTED, generation=4), ran, job) == Plan()


def test_a_job_waits_for_the_one_whose_name_it_has() -> None:
    requeued = some_jobs(labels=QUEUE)
    job = a_job(JOBS_WANTED, ONE_NODE)

    assert planned(requeued, ONE_NODE, job) == Plan(deletes=(job,))
    assert planned(requeued, ONE_NODE, replace(job, deleted=True)) == Plan()
    assert planned(requeued, ONE_NODE).creates == (bodies.job(requeued, ONE_NODE),)


def test_a_job_of_another_instance_of_the_name_gives_way() -> None:
    job = a_job(JOBS_WANTED, ONE_NODE, owner="other")

    assert planned(JOBS_WANTED, ONE_NODE, job) == Plan(deletes=(job,))


def test_no_job_comes_while_the_configuration_has_too_many() -> None:
    assert planned(JOBS_WANTED, ONE_NODE, may_create=False) == Plan()


def test_pods_of_the_job_are_its_own() -> None:
    job = a_job(JOBS_WANTED, ONE_NODE)
    pod = replace(job, resource=PODS, name=f"{job.name}-x", uid="pod", owner=job.uid, revision="")

    plan = planned(JOBS_WANTED, replace(ONE_NODE, ran=job.revision), job, pod)

    assert plan == Plan()


def test_pods_give_way_to_a_job() -> None:
    broker = a_broker(PODS_WANTED, ONE_NODE)

    plan = planned(JOBS_WANTED, ONE_NODE, broker)

    assert plan.deletes == (broker,)
    assert plan.creates == (bodies.job(JOBS_WANTED, ONE_NODE),)
