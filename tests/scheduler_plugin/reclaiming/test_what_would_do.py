"""Which devices would do: those of the class's drivers, however odd what is asked for."""

from __future__ import annotations

from scheduler_plugin.objects.devices.devices import class_view
from scheduler_plugin.reclaiming.targets import InProgress, Targets
from tests.scheduler_plugin.builders import (
    a_queue,
    a_request,
    a_result,
    a_world,
    an_allocated_claim,
)
from tests.scheduler_plugin.reclaiming.builders import a_used_pod
from tests.scheduler_plugin.reclaiming.devices_builders import (
    Cluster,
    a_device,
    a_node_object,
    a_slice_object,
)
from tests.scheduler_plugin.reclaiming.test_devices import a_cluster, use, waiting

GPU, NIC = "gpu.example.com", "nic.example.com"


def test_a_free_device_of_another_driver_than_the_class_names_would_not_do() -> None:
    said = {"cel": {"expression": f"device.driver == '{GPU}'"}}
    found = class_view({"metadata": {"name": "gpu"}, "spec": {"selectors": [said]}})
    used = a_result(pool="n", device="g1", driver=GPU)
    claim = an_allocated_claim(
        "r1", "r1", queue="robots", results=[used], requests=[a_request("gpu")]
    )
    world = a_world(
        found,
        *(a_queue("mine", gpu=(1, -1)), a_queue("robots", gpu=(0, -1))),
        *(claim, a_used_pod("r1", "robots", "r1", node="n")),
        *waiting(requests=[a_request("gpu")]),
    )
    nics = a_slice_object("nic0", node="m", driver=NIC)
    cluster = Cluster(world, a_slice_object("g1", driver=GPU), nics)
    cluster.nodes["m"] = a_node_object("m")
    cluster.requests = {"w": [a_request("gpu")]}

    assert cluster.taken() == ["r1"]


def test_more_values_than_are_looked_at_once_others_are_gone_keep_nobody_from_going() -> None:
    """While all are used there is no value to agree about; once they are gone there are many."""
    names = [f"d{number}" for number in range(600)]
    devices = [a_device(name, model=f"m{number // 2}") for number, name in enumerate(names)]
    users = [use("robots", f"r-{name}", on=name, pool="shared") for name in names]
    two = [a_request(count=2)]
    queues = [a_queue("mine", onvif=(2, -1)), a_queue("robots", onvif=(0, -1))]
    offered = [a_slice_object(*devices, node="")]
    cluster = a_cluster(*users, waiting(requests=two), slices=offered, queues=queues)
    cluster.constraints = [{"matchAttribute": "moorage.dev/model"}]
    cluster.request = {"count": 2}
    cluster.nodes["n"] = a_node_object(allocatable={"pods": "700"})

    assert isinstance(cluster.decide(), Targets | InProgress)
