"""A device whose nodes, slots and Configuration change while plans are carried out in part.

Whatever happens, plans come to rest once it stops, and then each broker is where it should be.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from driver.brokers import bodies
from driver.brokers.bodies import Made
from driver.brokers.devices import Device
from driver.brokers.plans import Plan, plan_configuration, plan_device
from driver.brokers.stored import Phase, Stored
from driver.brokers.workloads import Workloads
from kube.kinds import JOBS, PODS, SERVICES, TEMPLATES
from kube.resources import Resource
from tests.driver.brokers.broker_builders import (
    NODE_A,
    NODE_B,
    NODE_C,
    SERVICE_SPEC,
    a_device,
    a_job_spec,
    a_pod_spec,
    as_stored,
    some_workloads,
)

MOST_PLANS = 12
"""As many plans as any history needs to come to rest; each is carried out in full."""

NODES = st.sets(st.sampled_from((NODE_A, NODE_B, NODE_C))).map(lambda nodes: tuple(sorted(nodes)))
BROKERS = st.sampled_from(
    [
        {"pod": a_pod_spec("1"), "job": None},
        {"pod": a_pod_spec("2"), "job": None},
        {"pod": {"containers": [{"name": "broker"}]}, "job": None},
        {"pod": None, "job": a_job_spec("1")},
        {"pod": None, "job": a_job_spec("2")},
        {"pod": None, "job": None},
    ]
)
SERVICE_SPECS = st.sampled_from([None, SERVICE_SPEC, {**SERVICE_SPEC, "type": "NodePort"}])
LABELS = st.sampled_from([{}, {"kueue.x-k8s.io/queue-name": "vision"}])


@dataclass
class FakeCluster:
    """Objects of one Configuration with one Instance, as the API server would store them."""

    wanted: Workloads
    device: Device
    stored: dict[str, Stored] = field(default_factory=dict)
    count: int = 0
    jobs_made: set[tuple[str, str]] = field(default_factory=set)

    def uid(self) -> str:
        self.count += 1
        return f"uid-{self.count}"

    def of(self, resource: Resource) -> list[Stored]:
        return [each for each in self.stored.values() if each.resource == resource]

    def present(self, resource: Resource) -> list[Stored]:
        return [each for each in self.of(resource) if not each.deleted]

    def change(self, found: Stored, **fields: Any) -> None:
        self.stored[found.uid] = replace(found, **fields)

    def create(self, made: Made) -> None:
        taken = {each.name for each in self.of(made.resource)}
        assert made.name not in taken, "nothing is created while its name is taken"
        if made.resource in (PODS, JOBS):
            self.check_template()
        uid = self.uid()
        self.stored[uid] = as_stored(made, uid=uid)
        if made.resource == JOBS:
            self.jobs_made.add((self.device.uid, made.revision))

    def check_template(self) -> None:
        """The claims of a pod that comes now would be from the template that is stored now."""
        template = bodies.claim_template(self.wanted, self.device)
        found = [(each.revision, each.owner, each.deleted) for each in self.of(TEMPLATES)]
        assert found == ([(template.revision, self.device.uid, False)] if template else [])

    def apply(self, made: Made) -> None:
        found = next((each for each in self.of(SERVICES) if each.name == made.name), None)
        if found is None:
            self.create(made)
        else:
            self.stored[found.uid] = as_stored(made, uid=found.uid, deleted=found.deleted)

    def delete(self, found: Stored) -> None:
        if found.uid in self.stored:
            self.change(self.stored[found.uid], deleted=True)

    def carry_out(self, plan: Plan, steps: int) -> None:
        """The first writes of a plan; the process ends then."""
        writes: list[tuple[Any, Any]] = [(self.end, each) for each in plan.deletes]
        writes += [(self.create, each) for each in plan.creates]
        writes += [(self.apply, each) for each in plan.applies]
        writes += [] if plan.ran is None else [(self.remember, plan.ran)]
        for write, value in writes[:steps]:
            write(value)

    def end(self, found: Stored) -> None:
        """A deletion by a plan: a Job that is wanted again later is to be made again."""
        self.delete(found)
        self.jobs_made.discard((found.owner, found.revision))

    def remember(self, revision: str) -> None:
        self.device = replace(self.device, ran=revision)

    def collect_garbage(self, *resources: Resource) -> None:
        """What the garbage collector of Kubernetes does with objects of owners that are gone."""
        for found in [each for resource in resources for each in self.of(resource)]:
            if found.owner not in (self.device.uid, self.wanted.uid):
                self.delete(found)

    def finish_deletions(self) -> None:
        self.stored = {uid: each for uid, each in self.stored.items() if not each.deleted}

    def plans(self, waits: float) -> tuple[Plan, Plan]:
        """The plans of the Instance and of its Configuration."""
        found = [each for each in self.stored.values() if each.instance]
        services = [each for each in self.of(SERVICES) if not each.instance]
        device = plan_device(self.wanted, self.device, found, lambda _: waits)
        return device, plan_configuration(self.wanted, services, self.of(PODS))


class BrokerHistory(RuleBasedStateMachine):
    """One Instance, its Configuration, and a controller that may end after any write."""

    @initialize(is_dra=st.booleans(), broker=BROKERS, service=SERVICE_SPECS)
    def begin(self, *, is_dra: bool, broker: Any, service: Any) -> None:
        self.cluster = FakeCluster(some_workloads(), a_device(is_dra=is_dra))
        self.brokers_change(broker)
        self.change(instance_service=service, configuration_service=service)

    @rule(broker=BROKERS)
    def brokers_change(self, broker: Any) -> None:
        self.change(**broker)

    @rule(of_instance=SERVICE_SPECS, of_all=SERVICE_SPECS, labels=LABELS)
    def services_or_queue_change(self, of_instance: Any, of_all: Any, labels: Any) -> None:
        self.change(instance_service=of_instance, configuration_service=of_all, labels=labels)

    def change(self, **spec: Any) -> None:
        """Write the Configuration's spec."""
        before = self.cluster.wanted
        self.cluster.wanted = replace(before, generation=before.generation + 1, **spec)

    @rule(nodes=NODES, capacity=st.integers(1, 3))
    def device_changes(self, nodes: Any, capacity: int) -> None:
        self.cluster.device = replace(self.cluster.device, nodes=nodes, capacity=capacity)

    @rule(with_configuration=st.booleans())
    def device_is_made_anew(self, *, with_configuration: bool) -> None:
        if with_configuration:
            self.cluster.wanted = replace(self.cluster.wanted, uid=self.cluster.uid(), generation=1)
        self.cluster.device = replace(self.cluster.device, uid=self.cluster.uid(), ran="")

    @rule(data=st.data(), phase=st.sampled_from(("Ended", "Running")))
    def a_broker_proceeds(self, data: st.DataObject, phase: Phase) -> None:
        if brokers := [*self.cluster.present(PODS), *self.cluster.present(JOBS)]:
            self.cluster.change(data.draw(st.sampled_from(brokers)), phase=phase)

    @rule(data=st.data())
    def something_is_deleted(self, data: st.DataObject) -> None:
        if self.cluster.stored:
            uid = data.draw(st.sampled_from(sorted(self.cluster.stored)))
            self.cluster.delete(self.cluster.stored[uid])

    @rule(collects_garbage=st.booleans())
    def deletions_finish(self, *, collects_garbage: bool) -> None:
        self.cluster.finish_deletions()
        if collects_garbage:
            self.cluster.collect_garbage(PODS, JOBS, SERVICES, TEMPLATES)

    @rule()
    def plans_are_carried_out(self) -> None:
        self.plan_is_carried_out(0.0, 99)

    @rule(waits=st.sampled_from((0.0, 0.0, 4.0)), steps=st.integers(0, 4))
    def plan_is_carried_out(self, waits: float, steps: int) -> None:
        for plan in self.cluster.plans(waits):
            assert not plan.creates or not waits or all(m.resource != PODS for m in plan.creates)
            self.cluster.carry_out(plan, steps)

    def teardown(self) -> None:
        if hasattr(self, "cluster"):
            self._come_to_rest()
            self._check_pods()
            self._check_jobs()
            self.cluster.check_template()
            self._check_services()

    def _come_to_rest(self) -> None:
        for _ in range(MOST_PLANS):
            self.cluster.collect_garbage(SERVICES)  # Plans themselves end the others.
            self.cluster.finish_deletions()
            for pod in self.cluster.present(PODS):
                if pod.phase == "Pending":
                    self.cluster.change(pod, phase="Running")
            plans = self.cluster.plans(0.0)
            if plans == (Plan(), Plan()):
                return
            for plan in plans:
                self.cluster.carry_out(plan, 99)
        raise AssertionError("plans do not come to rest")

    def _check_pods(self) -> None:
        wanted, device = self.cluster.wanted, self.cluster.device
        pods = self.cluster.of(PODS)
        count = min(device.capacity, len(device.nodes)) if wanted.pod else 0
        assert len(pods) == len({pod.node for pod in pods}) == count
        assert {pod.node for pod in pods} <= set(device.nodes)
        for node in device.nodes if wanted.pod else ():
            made = bodies.pod(wanted, device, node)
            of_node = [pod for pod in pods if pod.node == node]
            assert all(pod.revision == made.revision for pod in of_node)
        assert all(pod.owner == device.uid and pod.phase == "Running" for pod in pods)

    def _check_jobs(self) -> None:
        wanted, device = self.cluster.wanted, self.cluster.device
        jobs = self.cluster.of(JOBS)
        if wanted.job is None:
            assert jobs == []
            return
        revision = bodies.job(wanted, device).revision
        assert device.ran == revision
        assert all((job.revision, job.owner) == (revision, device.uid) for job in jobs)
        assert (device.uid, revision) in self.cluster.jobs_made

    def _check_services(self) -> None:
        wanted, device = self.cluster.wanted, self.cluster.device
        expected = []
        if self.cluster.of(PODS) and wanted.instance_service:
            expected.append((bodies.instance_service(wanted, device), device.uid))
        if self.cluster.of(PODS) and wanted.configuration_service:
            expected.append((bodies.configuration_service(wanted), wanted.uid))
        found = {(each.name, each.revision, each.owner) for each in self.cluster.of(SERVICES)}
        assert found == {(made.name, made.revision, owner) for made, owner in expected}


TestBrokerHistory = BrokerHistory.TestCase
TestBrokerHistory.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
