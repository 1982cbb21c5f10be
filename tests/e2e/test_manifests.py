"""The definitions, the manifests and the image on the real Kubernetes."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from functools import partial
from subprocess import CompletedProcess
from typing import Any, get_args, get_type_hints

import pytest
import yaml

from driver.api import NodeName
from driver.devices import device_hash
from driver.names import label_value
from driver.running.node_settings import NodeSettings
from kube.calls.api import ApiError, connect
from kube.kinds import CLAIMS, CLASSES, INSTANCES
from kube.kinds import NODES as NODES_KIND
from kube.resources import ObjectPath
from local_cluster import loop_devices
from local_cluster.api import BUSYBOX_IMAGE, Cluster, ClusterSettings
from local_cluster.image_build import TAG, build_image
from local_cluster.image_recipe import CHECKOUT
from local_cluster.loop_devices import LoopDevice
from moorage_demo import installation
from tests.deploy.documents import MANIFESTS, objects_of_kind
from tests.e2e import rights

SYSTEM = "moorage-system"
NODES = ("node-a", "node-b")
POD_SPEC = {
    "containers": [
        {
            "name": "broker",
            "image": "broker:v1",
            "resources": {"limits": {"{{PLACEHOLDER}}": "1", "cpu": "10m"}},
            "securityContext": {"privileged": True},
        }
    ]
}
SERVICE_SPEC = {"type": "ClusterIP", "ports": [{"name": "grpc", "port": 80, "targetPort": 8083}]}
AKRI_SPECS: Mapping[str, Any] = {
    "akri-debug-echo-foo": {
        "discoveryHandler": {
            "name": "debugEcho",
            "discoveryDetails": 'descriptions:\n- "foo0"\n- "foo1"\n',
        },
        "brokerSpec": {"brokerPodSpec": POD_SPEC},
        "instanceServiceSpec": SERVICE_SPEC,
        "configurationServiceSpec": SERVICE_SPEC,
        "brokerProperties": {},
        "capacity": 2,
    },
    "akri-udev-job": {
        "discoveryHandler": {
            "name": "udev",
            "discoveryDetails": "groupRecursive: true\nudevRules:\n- 'KERNEL==\"video[0-9]*\"'\n",
        },
        "brokerSpec": {
            "brokerJobSpec": {
                "template": {"spec": {**POD_SPEC, "restartPolicy": "OnFailure"}},
                "backoffLimit": 2,
            }
        },
        "brokerProperties": {"RESOLUTION_WIDTH": "640"},
        "capacity": 5,
    },
    "akri-onvif-secrets": {
        "discoveryHandler": {
            "name": "onvif",
            "discoveryDetails": "discoveryTimeoutSeconds: 2\n",
            "discoveryProperties": [
                {"name": "username_default", "value": "admin"},
                {
                    "name": "password_default",
                    "valueFrom": {
                        "secretKeyRef": {
                            "name": "s",
                            "namespace": "n",
                            "key": "k",
                            "optional": True,
                        }
                    },
                },
                {"name": "list", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
            ],
        },
    },
    "no-capacity-left": {"discoveryHandler": {"name": "udev"}, "capacity": 0},
    "less-than-none": {"discoveryHandler": {"name": "udev"}, "capacity": -3},
    "nothing": {},
    "with-our-fields": {
        "discoveryHandler": {"name": "udev"},
        "uniqueDevices": False,
        "offlineGracePeriod": "1h30m",
        "offlineTaintEffect": "NoExecute",
        "attributes": {"floor": {"int": 3}, "example.com/owner": {"string": "x"}},
    },
}
REFUSED_SPECS: Mapping[str, Any] = {
    "capacity": {"capacity": "five"},
    "uniqueDevices": {"uniqueDevices": "yes"},
    "offlineGracePeriod": {"offlineGracePeriod": "5 minutes"},
    "offlineTaintEffect": {"offlineTaintEffect": "Evict"},
    "attributes.floor": {"attributes": {"floor": {"int": 3, "bool": True}}},
    "attributes.floor.int": {"attributes": {"floor": {"int": "3"}}},
    "discoveryProperties[0]": {
        "discoveryHandler": {
            "discoveryProperties": [
                {"name": "n", "value": "v", "valueFrom": {"secretKeyRef": {"name": "s"}}}
            ]
        }
    },
    "discoveryProperties[0].name": {
        "discoveryHandler": {"discoveryProperties": [{"name": "0n", "value": "v"}]}
    },
}


def configuration(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "akri.sh/v0", "kind": "Configuration", "metadata": metadata, "spec": spec}


OWNER = {"apiVersion": "akri.sh/v0", "kind": "Configuration", "name": "c", "uid": "a-uid"}


def named(device: str) -> str:
    """The name of the Instance of a device."""
    return f"c-{device_hash(device, None)}"


def instance(device: str, node: str | None, **spec: Any) -> dict[str, Any]:
    """An Instance of the Configuration `c`, which nobody needs to have made."""
    labels = {} if node is None else {"labels": {"moorage.dev/node": node}}
    cdi = f"akri.sh/c={device_hash(device, None)}"
    fixed = {"configurationName": "c", "cdiName": cdi, "capacity": 3}
    metadata = {"name": named(device), "namespace": "default", "ownerReferences": [OWNER]}
    return {
        "apiVersion": "akri.sh/v0",
        "kind": "Instance",
        "metadata": {**metadata, **labels},
        "spec": {**fixed, **spec},
    }


def resource_slice(
    name: str, pool: str = "node-a", driver: str = "moorage.dev", **spec: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "devices": [],
            **spec,
        },
    }


class Identity:
    """Kubectl with the token of one ServiceAccount."""

    def __init__(self, cluster: Cluster, account: str, node: str | None = None) -> None:
        self._cluster = cluster
        self._kubeconfig = cluster.service_account_kubeconfig(account, namespace=SYSTEM, node=node)

    def kubectl(self, *args: str, body: Any = None) -> CompletedProcess[str]:
        stdin = None if body is None else json.dumps(body)
        arguments = (f"--kubeconfig={self._kubeconfig}", *args)
        return self._cluster.kubectl(*arguments, stdin=stdin, check=False)

    def create(self, body: Any) -> str:
        """What was wrong with it; empty if it was created."""
        return self.kubectl("create", "-f", "-", body=body).stderr

    def replace(self, body: Any) -> str:
        """The same, of an update."""
        return self.kubectl("replace", "-f", "-", body=body).stderr

    def apply(self, body: Any, manager: str) -> str:
        server_side = ("apply", "--server-side", f"--field-manager={manager}")
        return self.kubectl(*server_side, "-f", "-", body=body).stderr

    def merge_patch(self, path: ObjectPath, body: dict[str, Any]) -> str:
        """The same, of a patch; kubectl would read the object first, which some may not."""
        return asyncio.run(self._merge_patch(path, body))

    async def _merge_patch(self, path: ObjectPath, body: dict[str, Any]) -> str:
        async with connect(self._kubeconfig) as client:
            try:
                await client.merge_patch(path, body)
            except ApiError as error:
                return str(error)
        return ""

    def can(self, verb: str, resource: str, *options: str) -> bool:
        return self.kubectl("auth", "can-i", verb, resource, *options).returncode == 0


def labelled(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "labels": {"a": "b"}}}


def wait_in_force(cluster: Cluster) -> None:
    """Ask policies for what they must refuse: they come into force one by one."""
    driver = Identity(cluster, "driver-node", "node-a")

    def refuses(body: Any) -> bool:
        dry_run = ("create", "--dry-run=server", "-f", "-")
        return "denied" in driver.kubectl(*dry_run, body=body).stderr

    for foreign in (
        resource_slice("probe", nodeName="node-b"),
        instance("probe", "node-b", nodes=["node-b"]),
    ):
        cluster.wait_until(f"refused: {foreign['kind']}", partial(refuses, foreign))


def remove_policies(cluster: Cluster) -> None:
    """Others play on this API server whom the policies would refuse."""
    kinds = "validatingadmissionpolicies,validatingadmissionpolicybindings"
    cluster.kubectl("delete", kinds, "-l", "app.kubernetes.io/part-of=moorage")


@pytest.fixture(scope="module")
def server(apiserver: Cluster) -> Iterator[Cluster]:
    """An API server with everything installed, and two nodes that nobody runs."""
    installation.install_objects(apiserver)
    apiserver.apply(list(installation.objects_of(*installation.WORKLOADS)))
    for node in NODES:
        apiserver.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
    wait_in_force(apiserver)
    yield apiserver
    apiserver.kubectl("delete", "configurations,instances", "--all", "--namespace=default")
    apiserver.kubectl("delete", "resourceslice", "theirs", "--ignore-not-found")
    remove_policies(apiserver)


@pytest.fixture(scope="module")
def node_a(server: Cluster) -> Identity:
    return Identity(server, "driver-node", "node-a")


@pytest.fixture(scope="module")
def node_b(server: Cluster) -> Identity:
    return Identity(server, "driver-node", "node-b")


@pytest.mark.parametrize("name", AKRI_SPECS)
def test_configurations_are_stored_as_they_were_written(name: str, server: Cluster) -> None:
    server.apply(configuration(name, AKRI_SPECS[name]))

    stored = server.get("akric", name, namespace="default")
    assert stored is not None
    assert stored["spec"] == AKRI_SPECS[name]


@pytest.mark.parametrize("path", REFUSED_SPECS)
def test_configurations_of_no_sense_are_refused(path: str, server: Cluster) -> None:
    body = json.dumps(configuration("refused", REFUSED_SPECS[path]))

    done = server.kubectl("create", "-f", "-", stdin=body, check=False)

    assert "is invalid" in done.stderr
    assert path in done.stderr


def test_a_status_shows_and_survives_an_apply(server: Cluster) -> None:
    body = configuration("shown", AKRI_SPECS["akri-udev-job"])
    server.apply(body)
    condition = {
        "type": "Accepted",
        "status": "False",
        "reason": "NameTaken",
        "message": "An older one holds the name.",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    patch = json.dumps({"status": {"observedGeneration": 1, "conditions": [condition]}})
    where = ("configuration", "shown", "--namespace=default")
    server.kubectl("patch", *where, "--subresource=status", "--type=merge", "-p", patch)
    server.apply(body)

    table = server.kubectl("get", *where).stdout.splitlines()

    assert table[0].split() == ["NAME", "HANDLER", "CAPACITY", "ACCEPTED", "AGE"]
    assert table[1].split()[:4] == ["shown", "udev", "5", "False"]


def test_instances_keep_akris_slots(server: Cluster) -> None:
    i = named("i")
    usage = {f"{i}-0": "node-a", f"{i}-1": "C:0:node-b", f"{i}-2": ""}
    body = instance("i", None, shared=True, nodes=list(NODES), deviceUsage=usage)
    server.apply(body)

    stored = server.get("akrii", i, namespace="default")
    table = server.kubectl("get", "akrii", i, "--namespace=default").stdout.splitlines()

    assert stored is not None
    assert stored["spec"] == {**body["spec"], "brokerProperties": {}}
    assert table[0].split() == ["NAME", "CONFIG", "SHARED", "NODES", "AGE"]


def test_each_node_owns_its_slots_and_its_place_in_nodes(server: Cluster) -> None:
    owned = named("owned")

    def claim(manager: str, **spec: Any) -> CompletedProcess[str]:
        body = json.dumps(instance("owned", None, shared=True, **spec))
        server_side = ("apply", "--server-side", f"--field-manager={manager}", "-f", "-")
        return server.kubectl(*server_side, stdin=body, check=False)

    first = claim("a", nodes=["node-a"], deviceUsage={f"{owned}-0": "node-a"})
    second = claim("b", nodes=["node-b"], deviceUsage={f"{owned}-1": "node-b"})
    lost = claim("c", deviceUsage={f"{owned}-0": "node-b"})
    released = claim("a", nodes=["node-a"])

    stored = server.get("instance", owned, namespace="default")
    assert stored is not None
    assert [first.stderr, second.stderr, released.stderr] == ["", "", ""]
    assert "conflict" in lost.stderr
    assert stored["spec"]["nodes"] == list(NODES)
    assert stored["spec"]["deviceUsage"] == {f"{owned}-1": "node-b"}


def test_a_node_writes_its_own_slices(node_a: Identity) -> None:
    for pool in ("node-a", "local/node-a/some.camera"):
        own = resource_slice("own", pool, nodeName="node-a")

        assert node_a.create(own) == ""
        assert node_a.replace(labelled(own)) == ""
        assert node_a.kubectl("delete", "resourceslice", "own").returncode == 0


def test_a_node_writes_no_other_slices(server: Cluster, node_a: Identity, node_b: Identity) -> None:
    theirs = resource_slice("theirs", "node-b", nodeName="node-b")
    assert node_b.create(theirs) == ""

    created = node_a.create(resource_slice("other", "node-b", nodeName="node-b"))
    deleted = node_a.kubectl("delete", "resourceslice", "theirs").stderr
    written = node_a.replace(labelled(theirs))
    everywhere = node_a.create(resource_slice("everywhere", "shared/c", allNodes=True))
    intruding = node_a.create(resource_slice("intruding", "shared/c", nodeName="node-a"))
    foreign = node_a.create(resource_slice("foreign", driver="gpu.test", nodeName="node-a"))

    for message in (created, deleted, written):
        assert "only that node's ResourceSlices, not those of node-b." in message
    assert "not those of several nodes." in everywhere
    for name in ("local/node-b/c", "local/node-a", "local/node-abc/c"):
        assert f"local/node-a/, not {name}." in node_a.create(
            resource_slice("intruding", name, nodeName="node-a")
        )
    assert "that name and those that begin with local/node-a/, not shared/c." in intruding
    assert "ResourceSlices of gpu.test are not the driver's to write." in foreign
    assert server.get("resourceslice", "theirs") is not None


def test_the_shared_driver_writes_shared_pools_and_no_other_slices(server: Cluster) -> None:
    shared = Identity(server, "driver-shared")
    theirs = resource_slice("of-a-node", nodeName="node-a")
    server.apply(theirs)
    several = resource_slice("several", "shared/some.camera", allNodes=True)

    assert shared.create(several) == ""
    assert shared.replace(several) == ""
    assert shared.kubectl("delete", "resourceslice", "several").returncode == 0
    for slice_ in (
        resource_slice("another", "node-a", allNodes=True),
        resource_slice("another", "shared/c", nodeName="node-a"),
    ):
        assert "only pools whose names begin with shared/, not " in shared.create(slice_)
    refused = shared.kubectl("delete", "resourceslice", "of-a-node").stderr
    assert "only pools whose names begin with shared/, not node-a." in refused
    foreign = shared.create(resource_slice("foreign", "shared/c", "gpu.test", allNodes=True))
    assert "ResourceSlices of gpu.test are not the driver's to write." in foreign
    server.kubectl("delete", "resourceslice", "of-a-node")


def test_a_token_without_a_node_writes_nothing(server: Cluster) -> None:
    stray = Identity(server, "driver-node")

    assert "names no node" in stray.create(resource_slice("stray", nodeName="node-a"))
    assert "names no node" in stray.create(instance("stray", "node-a"))


def test_a_node_tries_classes_and_makes_none(node_a: Identity) -> None:
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "tried"},
        "spec": {},
    }

    tried = node_a.kubectl("create", "--dry-run=server", "-f", "-", body=body)

    assert tried.stderr == ""
    assert "may try the creation of a DeviceClass, and create none." in node_a.create(body)


def test_a_node_writes_its_own_instances(node_a: Identity) -> None:
    body = instance("mine", "node-a", nodes=["node-a"])

    assert node_a.apply(body, "node-a") == "", "created"
    assert node_a.apply(instance("mine", "node-a", nodes=[]), "node-a") == "", "changed"
    assert node_a.kubectl("delete", "instance", named("mine"), "-n", "default").returncode == 0


def test_a_node_whose_name_is_too_long_for_a_label_writes_its_own_instances(
    server: Cluster,
) -> None:
    node, other = NodeName("node-" + 90 * "x"), NodeName("other-" + 90 * "x")
    server.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
    driver = Identity(server, "driver-node", node)

    assert driver.create(instance("long", label_value(node), nodes=[node])) == ""
    assert "this one says" in driver.create(instance("new", label_value(other), nodes=[node]))
    assert driver.kubectl("delete", "instance", named("long"), "-n", "default").returncode == 0
    server.kubectl("delete", "node", node)


def test_a_node_writes_no_other_instances(server: Cluster, node_a: Identity) -> None:
    server.apply(instance("of-b", "node-b", nodes=["node-b"]))
    server.apply(instance("of-all", None, shared=True))
    assert node_a.create(instance("of-a", "node-a", nodes=["node-a"])) == ""
    in_default = ("--namespace=default",)

    for name, label in ((named("of-b"), '"node-b"'), (named("of-all"), '""')):
        for command in ("delete", "label"):
            more = ("moorage.dev/node=node-a", "--overwrite") if command == "label" else ()
            refused = node_a.kubectl(command, "instance", name, *more, *in_default).stderr
            assert f"that of {name} is {label}." in refused
    to_b = ("moorage.dev/node=node-b", "--overwrite")
    given_away = node_a.kubectl("label", "instance", named("of-a"), *to_b, *in_default)
    shared = node_a.create(instance("new", "node-a", shared=True))
    elsewhere = node_a.create(instance("new", "node-a", nodes=["node-a", "node-b"]))

    assert 'this one says "node-b"' in given_away.stderr
    assert "may not share its Instances or put other nodes into one" in shared
    assert "may not share its Instances or put other nodes into one" in elsewhere


def a_shared_one(name: str, *nodes: str, **spec: Any) -> dict[str, Any]:
    """An Instance that no node's label is on, as `nodes` see it."""
    return instance(name, "", shared=True, nodes=list(nodes), **spec)


def patch(who: Identity, device: str, **spec: Any) -> str:
    """What was wrong with a merge patch of an Instance's spec; empty if it was done."""
    return who.merge_patch(INSTANCES.at(named(device), "default"), {"spec": spec})


def test_a_node_writes_its_part_of_a_shared_instance(
    server: Cluster, node_a: Identity, node_b: Identity
) -> None:
    first, second = (f"{named('all')}-{index}" for index in (0, 1))
    usage = {first: "node-a", second: f"C:{second}:node-b"}
    entry = {"metadata": {"name": named("all"), "namespace": "default"}}
    typed = {"apiVersion": "akri.sh/v0", "kind": "Instance"}

    assert node_b.apply(a_shared_one("all"), "body") == "", "made"
    assert node_b.apply({**typed, **entry, "spec": {"nodes": ["node-b"]}}, "b") == "", "entered"
    assert node_a.apply({**typed, **entry, "spec": {"nodes": ["node-a"]}}, "a") == "", "entered"
    assert node_a.apply(a_shared_one("all", capacity=2), "body") == "", "the first writes the body"
    assert patch(node_a, "all", deviceUsage={first: usage[first]}) == "", "taken"
    assert patch(node_b, "all", deviceUsage={second: usage[second]}) == "", "taken"
    stored = server.get("instance", named("all"), namespace="default")
    assert stored is not None
    assert stored["spec"]["deviceUsage"] == usage
    assert sorted(stored["spec"]["nodes"]) == list(NODES)
    assert patch(node_a, "all", deviceUsage={first: None}) == "", "released"
    assert node_a.apply({**typed, **entry}, "a") == "", "left"
    assert node_b.apply(a_shared_one("all", capacity=3), "body") == "", "first now"


def test_a_node_writes_no_more_of_a_shared_instance(
    server: Cluster, node_a: Identity, node_b: Identity
) -> None:
    ours = named("ours")
    usage = {f"{ours}-0": "node-a", f"{ours}-1": f"C:{ours}-1:node-a", f"{ours}-2": ""}
    server.apply(a_shared_one("ours", *NODES, deviceUsage=usage))
    of_others = "this would change those of others"

    assert "may write only its own entry in nodes" in patch(node_b, "ours", nodes=["node-b"])
    assert "may write only its own entry in nodes" in patch(node_a, "ours", nodes=[*NODES, "x"])
    for slot, value in (
        (f"{ours}-0", None),
        (f"{ours}-0", ""),
        (f"{ours}-1", None),
        (f"{ours}-1", f"C:{ours}-1:node-b"),
        (f"{ours}-2", "node-a"),
        (f"{ours}-3", "C:x:node-ab"),
    ):
        assert of_others in patch(node_b, "ours", deviceUsage={slot: value}), (slot, value)
    first = "the rest is for the first by name of node-a, node-b"
    assert first in patch(node_b, "ours", capacity=9)
    assert first in node_b.kubectl("annotate", "instance", ours, "a=b", "-ndefault").stderr
    assert "must be a shared one" in patch(node_a, "ours", shared=False)
    assert (
        f'that of {ours} is "".' in node_b.kubectl("delete", "instance", ours, "-ndefault").stderr
    )
    assert "may write only its own entry" in node_b.create(a_shared_one("new", "node-a"))
    assert of_others in node_b.create(a_shared_one("new", deviceUsage={f"{ours}-0": "node-a"}))


def test_a_node_has_no_part_in_a_shared_instance_that_it_does_not_say_it_sees(
    server: Cluster, node_a: Identity, node_b: Identity
) -> None:
    """Its name sorts first, or nobody sees the device for now: both were enough before."""
    slot = f"{named('far')}-0"
    used = {f"{named('far')}-1": "node-a"}
    for nodes in (["node-b"], []):
        server.apply(a_shared_one("far", *nodes, deviceUsage=used))
        in_default = ("-n", "default")

        assert "is not one of them" in patch(node_a, "far", capacity=0), nodes
        label = node_a.kubectl("label", "instance", named("far"), "a=b", *in_default).stderr
        assert "is not one of them" in label, nodes
        for value in ("node-a", "C:x:node-a"):
            assert "one of its nodes" in patch(node_a, "far", deviceUsage={slot: value}), nodes
    # Its pod may end after it has lost sight of the device.
    assert patch(node_a, "far", deviceUsage=dict.fromkeys(used)) == ""
    assert patch(node_b, "far", nodes=["node-b"]) == "", "now it says so"
    assert patch(node_b, "far", deviceUsage={slot: "node-b"}) == ""
    assert patch(node_b, "far", capacity=2) == ""
    assert patch(node_b, "far", nodes=[], capacity=3) == "", "the last word of one that leaves"


def with_owners(body: dict[str, Any], *owners: dict[str, Any]) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "ownerReferences": list(owners)}}


WRONG_OWNERS = {
    "none": (),
    "two": (OWNER, {**OWNER, "uid": "another"}),
    "another kind": ({**OWNER, "kind": "Instance"},),
    "another group": ({**OWNER, "apiVersion": "v1"},),
    "another name": ({**OWNER, "name": "d"},),
}


@pytest.mark.parametrize("what", WRONG_OWNERS)
def test_a_node_leaves_an_instance_to_its_configuration_alone(
    what: str, server: Cluster, node_a: Identity
) -> None:
    """What has an owner that does not exist, the garbage collector deletes."""
    owners = WRONG_OWNERS[what]
    server.apply(a_shared_one("owned-by", "node-a"))
    patched = json.dumps({"metadata": {"ownerReferences": list(owners)}})
    merge = ("patch", "instance", named("owned-by"), "-ndefault", "--type=merge", "-p", patched)

    for local in (
        node_a.create(with_owners(instance("of-nobody", "node-a"), *owners)),
        node_a.create(with_owners(a_shared_one("of-nobody"), *owners)),
        node_a.kubectl(*merge).stderr,
    ):
        assert "exactly one owner, the Configuration c" in local, what


def test_the_owner_of_a_shared_instance_never_changes(server: Cluster, node_a: Identity) -> None:
    another = {**OWNER, "uid": "another"}
    server.apply(a_shared_one("kept", "node-a"))
    server.apply(instance("own", "node-a", nodes=["node-a"]))

    def owned_by(device: str) -> str:
        patched = json.dumps({"metadata": {"ownerReferences": [another]}})
        name = ("instance", named(device), "--namespace=default")
        return node_a.kubectl("patch", *name, "--type=merge", "-p", patched).stderr

    assert "and a shared one to the same that it has" in owned_by("kept")
    assert owned_by("own") == "", "it may remove that altogether"
    server.kubectl("delete", "instance", named("own"), "--namespace=default")


@pytest.mark.parametrize("label", ["node-a", ""])
def test_a_node_names_an_instance_after_its_configuration(label: str, node_a: Identity) -> None:
    right = instance("named", label, shared=not label)
    digits = device_hash("named", None)
    wrong = {
        "another's": {"configurationName": "d", "cdiName": f"akri.sh/d={digits}"},
        "part of the name": {"configurationName": "c-0", "cdiName": f"akri.sh/c-0={digits}"},
        "another cdiName": {"cdiName": f"akri.sh/d={digits}"},
        "another hash": {"cdiName": "akri.sh/c=000000"},
    }
    must = "must name an Instance after its Configuration"

    for what, spec in wrong.items():
        assert must in node_a.create({**right, "spec": {**right["spec"], **spec}}), what
    for name in ("named", "c-", "c-cam-8120fe", "c-8120fe0", "c-cameras"):
        metadata = {**right["metadata"], "name": name}
        refused = node_a.create({**right, "metadata": metadata})
        assert must in refused or "Invalid value" in refused, name


@pytest.mark.parametrize("label", ["node-a", ""])
@pytest.mark.parametrize("digits", range(5, 18))
def test_a_node_names_instances_by_as_many_digits_as_a_setting_may_say(
    digits: int, label: str, node_a: Identity
) -> None:
    allowed = str(digits) in get_args(get_type_hints(NodeSettings)["instance_hash_digits"])
    hash_ = "0123456789abcdef0"[:digits]
    body = instance(
        "named", label, shared=not label, nodes=["node-a"], cdiName=f"akri.sh/c={hash_}"
    )
    body["metadata"]["name"] = f"c-{hash_}"

    refused = node_a.kubectl("create", "--dry-run=server", "-f", "-", body=body).stderr

    assert ("must name an Instance after its Configuration" in refused) is not allowed
    assert (refused == "") is allowed


@pytest.mark.parametrize("field", ["configurationName", "cdiName"])
def test_what_an_instance_is_charged_by_never_changes(
    field: str, server: Cluster, node_a: Identity
) -> None:
    server.apply(a_shared_one("fixed", "node-a"))
    server.apply(instance("fixed-too", "node-a", nodes=["node-a"]))

    for device in ("fixed", "fixed-too"):
        refused = patch(node_a, device, **{field: "d"})
        assert "The configurationName and the cdiName of an Instance never change." in refused


def test_the_shared_driver_writes_no_vendor_s_class(server: Cluster) -> None:
    shared = Identity(server, "driver-shared")
    sentence = "only DeviceClasses with the label app.kubernetes.io/managed-by=moorage"

    def a_class(name: str, **labels: str) -> dict[str, Any]:
        metadata = {"name": name, "labels": labels}
        kind = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
        return {**kind, "metadata": metadata, "spec": {}}

    ours = {"app.kubernetes.io/managed-by": "moorage"}
    server.apply(a_class("vendors", **{"app.kubernetes.io/managed-by": "gpu-operator"}))
    key = "app.kubernetes.io/managed-by"

    def label(name: str, **labels: str) -> str:
        return shared.merge_patch(CLASSES.at(name), {"metadata": {"labels": labels}})

    def refused() -> bool:
        return sentence in shared.create({**a_class("new"), "metadata": {"name": "new"}})

    server.wait_until("the policy is in force", refused)
    assert shared.create(a_class("made", **ours)) == ""
    assert label("made", a="b") == ""
    for change in ({"a": "b"}, ours):
        assert sentence in label("vendors", **change), "took it"
    assert sentence in label("made", **{key: "other"}), "gave it"
    assert sentence in shared.kubectl("delete", "deviceclass", "vendors").stderr
    assert sentence in shared.create(a_class("vendors-too", **{key: "gpu-operator"}))
    assert shared.kubectl("delete", "deviceclass", "made").returncode == 0
    dry_run = ("create", "--dry-run=server", "-f", "-")
    assert shared.kubectl(*dry_run, body=a_class("tried")).stderr == ""
    server.kubectl("delete", "deviceclass", "vendors")


def test_a_node_takes_over_what_akri_left_on_it(
    server: Cluster, node_a: Identity, node_b: Identity
) -> None:
    server.apply(instance("akris", None, nodes=["node-a"]))
    of_b = instance("akris", "node-b", nodes=["node-b"])
    of_a = instance("akris", "node-a", nodes=["node-a"])

    assert f'that of {named("akris")} is "".' in node_b.apply(of_b, "moorage")
    force = ("apply", "--server-side", "--force-conflicts", "--field-manager=moorage", "-f", "-")
    assert node_a.kubectl(*force, body=of_a).stderr == ""


def test_a_node_says_how_its_own_handlers_do_and_nothing_else(
    server: Cluster, node_a: Identity, node_b: Identity
) -> None:
    server.apply(configuration("handled", {"discoveryHandler": {"name": "shelf"}}))

    def said(identity: Identity, manager: str, **status: Any) -> str:
        body = {**configuration("handled", {}), "status": status}
        del body["spec"]
        server_side = ("apply", "--server-side", "--subresource=status", "--force-conflicts")
        manager = f"--field-manager={manager}"
        return identity.kubectl(*server_side, manager, "-f", "-", body=body).stderr

    def nodes() -> dict[str, str]:
        stored = server.get("akric", "handled", namespace="default")
        assert stored is not None
        return {entry["name"]: entry["handler"] for entry in stored["status"].get("nodes", ())}

    assert said(node_a, "a", nodes=[{"name": "node-a", "handler": "Waiting"}]) == ""
    assert said(node_b, "b", nodes=[{"name": "node-b", "handler": "Offline"}]) == ""
    assert nodes() == {"node-a": "Waiting", "node-b": "Offline"}
    for others in (
        [{"name": "node-b", "handler": "Active"}],
        [{"name": "node-a", "handler": "Active"}, {"name": "node-c", "handler": "Active"}],
    ):
        assert "may write only its own entry in status.nodes" in said(node_a, "a", nodes=others)
    assert "shared driver's to write" in said(node_a, "a", observedGeneration=7)
    assert "Unsupported value" in said(node_a, "a", nodes=[{"name": "node-a", "handler": "Well"}])

    assert said(node_a, "a") == ""
    assert nodes() == {"node-b": "Offline"}


def test_a_node_says_how_many_devices_its_own_node_has_and_nothing_else(
    server: Cluster, node_a: Identity
) -> None:
    amounts = {"cpu": "4", "akri.sh/camera": "3", "akri.sh/gone": "1"}
    images = [{"names": ["a"], "sizeBytes": 1}]
    status = {"allocatable": amounts, "capacity": amounts, "images": images}
    with server.api() as api:
        api.patch("/api/v1/nodes/node-a/status", {"status": status})

    def said(body: dict[str, Any], node: str = "node-a") -> str:
        return node_a.merge_patch(NODES_KIND.at(node, subresource="status"), body)

    def offered(**changed: str | None) -> dict[str, Any]:
        return {"status": {"allocatable": changed}}

    camera = {"akri.sh/camera": "2", "akri.sh/gone": None, "akri.sh/new": "7"}
    assert said(offered(**camera)) == ""
    stored = server.get("node", "node-a")
    assert stored is not None
    expected = {"cpu": "4", "akri.sh/camera": "2", "akri.sh/new": "7"}
    assert stored["status"]["allocatable"] == expected
    assert stored["status"]["capacity"] == amounts
    assert "may write only the status of that Node" in said(offered(**camera), "node-b")
    for changed in ({"cpu": "5"}, {"cpu": None}, {"akri.shy/x": "1"}, {"gpu.com/x": "1"}):
        assert "what begins with akri.sh/" in said(offered(**changed)), changed
    for body in (
        {"status": {"capacity": {"akri.sh/camera": "9"}}},
        {"status": {"phase": "Running"}},
        {"status": {"images": None}},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"metadata": {"finalizers": ["a.b/c"]}},
    ):
        assert "nothing of its Node but status.allocatable" in said(body), body


def allocated_claim(server: Cluster, name: str, node: str | None, *pools: str) -> None:
    """A claim with a device of each pool, on a node or anywhere, as a scheduler writes it."""
    requests = [{"name": f"r{i}", "exactly": {"deviceClassName": "c"}} for i in range(len(pools))]
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": requests}},
    }
    results = [
        {"request": f"r{i}", "driver": _driver_of(pool), "pool": pool, "device": f"d{i}"}
        for i, pool in enumerate(pools)
    ]
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    where = {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}} if node else {}
    server.apply(claim)
    path = CLAIMS.at(name, "default", subresource="status")
    allocation = {"devices": {"results": results}, **where}
    scheduler = Identity(server, "scheduler")
    assert scheduler.merge_patch(path, {"status": {"allocation": allocation}}) == ""


def _driver_of(pool: str) -> str:
    return "theirs.example.com" if pool == "theirs" else "moorage.dev"


def test_a_node_says_what_it_prepared_of_its_claims_and_nothing_else(
    server: Cluster, node_a: Identity, node_b: Identity
) -> None:
    own = ("node-a", "local/node-a/c")
    allocated_claim(server, "of-a", "node-a", *own, "node-b", "theirs")
    allocated_claim(server, "of-all", None, "shared/c")

    def said(identity: Identity, claim: str, *devices: Mapping[str, Any], **status: Any) -> str:
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": claim, "namespace": "default"},
            "status": {"devices": list(devices), **status},
        }
        server_side = ("apply", "--server-side", "--subresource=status", "--force-conflicts")
        return identity.kubectl(*server_side, "--field-manager=d", "-f", "-", body=body).stderr

    def device(pool: str, number: int) -> dict[str, Any]:
        told = {"data": {"said": "this"}, "networkData": {"ips": ["192.0.2.5/32"]}}
        return {"driver": _driver_of(pool), "pool": pool, "device": f"d{number}", **told}

    of_own = [device(pool, number) for number, pool in enumerate(own)]
    assert said(node_a, "of-a", *of_own) == ""
    assert said(node_a, "of-all", device("shared/c", 0)) == ""
    assert said(node_b, "of-all", device("shared/c", 0)) == ""
    stored = server.get("resourceclaim", "of-a", namespace="default")
    assert stored is not None
    assert [d["data"] for d in stored["status"]["devices"]] == [{"said": "this"}] * 2

    assert "devices of moorage.dev in pools of that node" in said(
        node_a, "of-a", *of_own, device("node-b", 2)
    )
    assert "cannot" in said(node_a, "of-a", *of_own, device("theirs", 3))
    # Kubernetes itself lets no pod's token write of what is allocated on another node ...
    changed = [{**entry, "data": {"said": "that"}} for entry in of_own]
    assert said(node_b, "of-a", *changed) != ""
    # ... and ours says who may say what of which pool, on older Kubernetes, too.
    assert said(node_a, "of-a", *changed) == ""
    reserved = [{"resource": "pods", "name": "p", "uid": "u"}]
    assert said(node_a, "of-a", *changed, reservedFor=reserved) != ""
    assert not node_a.can("patch", "resourceclaims.resource.k8s.io")
    assert not node_a.can("patch", "resourceclaims.resource.k8s.io", "--subresource=binding")


def test_the_shared_driver_clears_up_instances_and_no_more(server: Cluster) -> None:
    shared = Identity(server, "driver-shared")
    left = [f"{named('left')}-{index}" for index in range(3)]
    usage = {left[0]: "node-a", left[1]: "node-b"}
    server.apply(a_shared_one("left", *NODES, deviceUsage=usage))
    in_default = ("instance", named("left"), "--namespace=default")

    assert "gives none away" in patch(shared, "left", deviceUsage={left[0]: "node-b"})
    assert "gives none away" in patch(shared, "left", deviceUsage={left[2]: "node-b"})
    assert "adds no node" in patch(shared, "left", nodes=[*NODES, "node-c"])
    assert "nothing of an Instance but" in patch(shared, "left", capacity=9)
    assert "that a node sees" in shared.kubectl("delete", *in_default).stderr
    assert patch(shared, "left", nodes=[]) == ""
    assert "that a node sees or uses" in shared.kubectl("delete", *in_default).stderr
    assert patch(shared, "left", deviceUsage={left[0]: None, left[1]: None}) == ""
    away = {"metadata": {"annotations": {"moorage.dev/offline-since": "now"}}}
    assert shared.merge_patch(INSTANCES.at(named("left"), "default"), away) == ""
    assert shared.kubectl("delete", *in_default).returncode == 0
    assert not shared.can("create", "instances.akri.sh")


def test_the_accounts_may_do_what_they_need_and_no_more(server: Cluster, node_a: Identity) -> None:
    shared = Identity(server, "driver-shared")
    in_system = f"--namespace={SYSTEM}"

    assert node_a.can("watch", "configurations.akri.sh", "--all-namespaces")
    assert node_a.can("patch", "instances.akri.sh")
    assert node_a.can("watch", "resourceclaims.resource.k8s.io", "--all-namespaces")
    assert node_a.can("get", "nodes")
    assert node_a.can("patch", "nodes", "--subresource=status")
    assert not node_a.can("patch", "nodes")
    assert node_a.can("create", "events.events.k8s.io")
    assert node_a.can("patch", "configurations.akri.sh", "--subresource=status")
    assert not node_a.can("patch", "configurations.akri.sh")
    assert not node_a.can("list", "nodes")
    assert not node_a.can("get", "secrets")
    assert shared.can("patch", "configurations.akri.sh", "--subresource=status")
    assert shared.can("create", "deviceclasses.resource.k8s.io")
    assert shared.can("create", "leases.coordination.k8s.io", in_system)
    assert shared.can("update", "leases.coordination.k8s.io/moorage-driver-shared", in_system)
    assert not shared.can("update", "leases.coordination.k8s.io/other", in_system)
    assert not shared.can("create", "leases.coordination.k8s.io", "--namespace=kube-system")
    assert shared.can("watch", "nodes")
    assert shared.can("watch", "resourceclaims.resource.k8s.io", "--all-namespaces")
    assert not shared.can("update", "resourceclaims.resource.k8s.io")
    assert not shared.can("patch", "configurations.akri.sh")


@pytest.fixture(scope="module")
def image(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image in the nodes' container runtimes, and the namespace that it runs in."""
    cluster.kubectl("apply", "-f", str(next(iter(sorted(MANIFESTS.iterdir())))))
    cluster.load_image(build_image(tmp_path_factory.mktemp("image"), TAG))
    return TAG


def a_pod(name: str, image: str, command: list[str]) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "Never",
        "command": command,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }


def output_of(cluster: Cluster, namespace: str, pod: dict[str, Any]) -> str:
    """What the pod printed, once it has ended well."""
    name = pod["metadata"]["name"]
    cluster.apply(pod, namespace=namespace)

    def ended() -> str | None:
        found = cluster.get("pod", name, namespace=namespace)
        phase = found["status"].get("phase") if found else None
        return str(phase) if phase in ("Succeeded", "Failed") else None

    phase = cluster.wait_until(f"pod {name} ends", ended, seconds=60)
    printed = cluster.kubectl("logs", name, "--namespace", namespace).stdout
    assert phase == "Succeeded", printed
    return printed


IMPORTS = """
import aiohttp, google.protobuf, grpc, kubernetes, kubernetes.aio, pyudev, ssl, yaml
import binder, driver.api, kube, scheduler_plugin, webhook
import driver.discovery.onvif.handler, driver.discovery.opcua.handler, driver.discovery.udev.handler
pyudev.Context()
assert yaml.__with_libyaml__
assert ssl.create_default_context().cert_store_stats()["x509_ca"] > 100
print("all there")
"""


def test_components_and_what_they_need_can_be_imported(
    cluster: Cluster, namespace: str, image: str
) -> None:
    pod = a_pod("imports", image, ["python3.13", "-c", IMPORTS])

    assert output_of(cluster, namespace, pod) == "all there\n"


def test_the_driver_s_command_runs(cluster: Cluster, namespace: str, image: str) -> None:
    pod = a_pod("help", image, ["moorage-driver", "--help"])

    assert "Usage: moorage-driver" in output_of(cluster, namespace, pod)


NODE_WORK = """
import os, pathlib, socket, pyudev

for line in pathlib.Path("/proc/self/status").read_text().splitlines():
    if line.startswith("CapEff"):
        print("capabilities", int(line.split()[1], 16))
for folder in ("/var/lib/kubelet/plugins/moorage.dev", "/var/lib/kubelet/plugins_registry"):
    path = f"{folder}/{os.environ['POD_UID']}.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
    os.unlink(path)
cdi = pathlib.Path("/var/run/cdi/test.json")
cdi.write_text("{}")
cdi.rename("/var/run/cdi/test2.json")
pathlib.Path("/var/run/cdi/test2.json").unlink()
context = pyudev.Context()
for source in ("kernel", "udev"):
    monitor = pyudev.Monitor.from_netlink(context, source=source)
    monitor.start()
print("devices", sum(1 for _ in context.list_devices(subsystem="block")) > 0)
print("node", os.environ["NODE_NAME"], socket.gethostname() == os.environ["NODE_NAME"])
for path in ("/usr/x", "/sys/x", "/run/udev/x"):
    try:
        pathlib.Path(path).touch()
    except OSError:
        continue
    print(path, "is writable")
"""


def test_the_node_driver_s_pod_can_do_its_work_without_capabilities(
    cluster: Cluster, image: str
) -> None:
    """The DaemonSet's own pod, but for its command: what it may do is what the driver may do."""
    daemon_set = next(
        found
        for found in objects_of_kind("DaemonSet")
        if found["metadata"]["name"] == "moorage-driver-node"
    )
    template = yaml.safe_load(yaml.safe_dump(daemon_set["spec"]["template"]))
    spec = {**template["spec"], "restartPolicy": "Never", "nodeName": "node-b"}
    spec["containers"][0]["command"] = ["python3.13", "-c", NODE_WORK]
    spec["serviceAccountName"] = "default"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "node-work"}, "spec": spec}

    printed = output_of(cluster, SYSTEM, pod)
    cluster.kubectl("delete", "pod", "node-work", "--namespace", SYSTEM)

    assert printed.splitlines() == ["capabilities 0", "devices True", "node node-b True"]


@pytest.fixture
def disk() -> Iterator[LoopDevice]:
    plugged = loop_devices.plug()
    yield plugged
    loop_devices.unplug(plugged)


@pytest.fixture
def installed() -> Iterator[Cluster]:
    """A cluster of its own: a second driver on a node of `cluster` would be one too many."""
    work_dir = CHECKOUT / f".cluster-manifests-{os.getpid()}"
    own = Cluster.up(ClusterSettings(work_dir=work_dir, nodes=1, parts=installation.PARTS))
    try:
        installation.install(own)
        yield own
        rights.note(own.logs)
    finally:
        own.down(purge=True)


def restart(cluster: Cluster) -> None:
    """Replace all pods, as an update of the image does."""
    for kind, name in installation.workloads():
        cluster.kubectl("rollout", "restart", f"{kind}/{name}".lower(), "-n", SYSTEM)
    for kind, name in installation.workloads():
        workload = f"{kind}/{name}".lower()
        cluster.kubectl("rollout", "status", workload, "-n", SYSTEM, "--timeout=120s")


def a_user(name: str) -> dict[str, Any]:
    """A pod written for a device plugin, but for its scheduler and queue."""
    user = a_pod(name, BUSYBOX_IMAGE, ["sh", "-c", "echo $UDEV_DEVNODE; exec sleep 1000"])
    user["metadata"]["labels"] = {"moorage.dev/queue": "team"}
    user["spec"]["schedulerName"] = "moorage"
    user["spec"]["containers"][0]["resources"] = {"limits": {"akri.sh/disks": "1"}}
    user["spec"]["terminationGracePeriodSeconds"] = 1
    return user


def usage(cluster: Cluster) -> int:
    queue = cluster.get("queue", "team") or {}
    return int(queue.get("status", {}).get("usage", {}).get("disks", 0))


def offer(cluster: Cluster, disk: LoopDevice) -> None:
    """Let pods ask for a disk."""
    rules = json.dumps({"udevRules": [f'KERNEL=="{disk.name}"']})
    handler = {"name": "udev", "discoveryDetails": rules}
    kind = {"apiVersion": "moorage.dev/v1alpha1", "kind": "Queue"}
    queue = {**kind, "metadata": {"name": "team"}, "spec": {"namespaceSelector": {}}}
    cluster.apply([queue, configuration("disks", {"discoveryHandler": handler})])
    cluster.wait_until("the class is there", lambda: cluster.get("deviceclass", "disks"))


def test_pods_start_while_the_driver_is_replaced(installed: Cluster, disk: LoopDevice) -> None:
    """The old driver goes when the kubelet has accepted the new one, and no pod finds none."""
    offer(installed, disk)
    daemon = ("daemonset/moorage-driver-node", "-n", SYSTEM)
    before = driver_pod(installed)
    installed.kubectl("rollout", "restart", *daemon)

    started = 0
    while driver_pod(installed) in (before, None) or started < 2:
        started += 1
        name = f"during-{started}"
        installed.apply(a_user(name), namespace="default")
        installed.wait(f"pod/{name}", "condition=Ready", seconds=60)
        installed.kubectl("delete", "pod", name, "--timeout=60s")

    installed.kubectl("rollout", "status", *daemon, "--timeout=60s")
    failed = [e for e in installed.list("events") if e["reason"].startswith("FailedPrepare")]
    assert not failed, [event["message"] for event in failed]


def driver_pod(cluster: Cluster) -> str | None:
    """The UID of the node's driver; None while there are two."""
    selector = ("-l", "app.kubernetes.io/component=node", "-o", "json")
    found = json.loads(cluster.kubectl("get", "pods", "-n", SYSTEM, *selector).stdout)["items"]
    return found[0]["metadata"]["uid"] if len(found) == 1 else None


def test_everything_runs_from_the_manifests_and_outlives_a_rolling_update(
    installed: Cluster, disk: LoopDevice
) -> None:
    """A pod gets a device that its queue is charged for, and gives it back to the next driver."""
    offer(installed, disk)
    installed.apply(a_user("before"), namespace="default")
    installed.wait("pod/before", "condition=Ready", seconds=60)
    said = installed.wait_until("it says it", lambda: installed.kubectl("logs", "before").stdout)
    assert said == f"/dev/{disk.name}\n"
    installed.wait_until("its queue is charged", lambda: usage(installed) == 1)

    restart(installed)
    installed.kubectl("delete", "pod", "before", "--timeout=60s")
    installed.wait_until("nobody is charged", lambda: usage(installed) == 0, seconds=60)
    installed.apply(a_user("after"), namespace="default")
    installed.wait("pod/after", "condition=Ready", seconds=90)
    installed.kubectl("delete", "pod", "after", "--timeout=60s")

    installed.wait_until("the claim is gone", lambda: not installed.list("resourceclaims"))
    (node,) = installed.nodes
    cdi = node.path("/run/cdi")
    installed.wait_until("it is unprepared", lambda: not list(cdi.glob("*.json")), seconds=90)
    assert_nothing_was_forbidden(installed)


def assert_nothing_was_forbidden(cluster: Cluster) -> None:
    """Neither to kube-scheduler nor to the plugin beside it."""
    selector = ("-l", "app.kubernetes.io/name=moorage-scheduler-plugin")
    options = ("-n", SYSTEM, "--all-containers", "--tail=-1")
    logs = cluster.kubectl("logs", *selector, *options).stdout

    assert "Successfully acquired lease" in logs
    assert "bound pod=default/after" in logs
    assert "forbidden" not in logs.lower()
