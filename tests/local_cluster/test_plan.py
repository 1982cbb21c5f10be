"""The plan of a local cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from local_cluster.configurations import merged
from local_cluster.node_parts import folders, setup_script
from local_cluster.plan import needs_new_cluster, planned_parts, waves
from local_cluster.settings import Profile
from tests.local_cluster.builders import WORK_DIR, a_blueprint, parts_of, some_settings


def test_parts_start_after_what_they_need() -> None:
    order = [{part.name for part in wave} for wave in waves(planned_parts(a_blueprint()))]

    assert order[0] == {"etcd"}
    assert order[1] == {"kube-apiserver", "containerd-node-a", "containerd-node-b"}
    assert {"kubelet-node-a", "kube-scheduler"} <= order[2]


@pytest.mark.parametrize(
    ("changes", "restarted"),
    [
        ({}, set()),
        ({"apiserver_flags": {"v": "4"}}, {"kube-apiserver"}),
        ({"runtime_config": {"api/alpha": "true"}}, {"kube-apiserver"}),
        ({"audit": False}, {"kube-apiserver"}),
        ({"scheduler_overlay": {"parallelism": 4}}, {"kube-scheduler-moorage"}),
        ({"kubelet_overlay": {"maxPods": 4}}, {"kubelet-node-a", "kubelet-node-b"}),
        ({"kubelet_root": "/var/lib/k0s/kubelet"}, {"kubelet-node-a", "kubelet-node-b"}),
        (
            {"feature_gates": {"DRADeviceTaints": False}},
            set(parts_of()) - {"etcd", "containerd-node-a", "containerd-node-b"},
        ),
    ],
)
def test_changed_settings_reach_certain_parts_only(
    changes: dict[str, Any], restarted: set[str]
) -> None:
    before, after = parts_of(), parts_of(**changes)

    assert {name for name in after if after[name].fingerprint != before[name].fingerprint} == (
        restarted
    )


def test_nodes_with_networks_of_their_own_have_a_proxy_each() -> None:
    shared, own = parts_of(), parts_of(own_networks=True)

    assert set(own) - set(shared) == {"kube-proxy-node-a", "kube-proxy-node-b"}
    assert own["kube-proxy-node-b"].node == "node-b"
    assert own["kube-proxy"] == shared["kube-proxy"]


def test_only_an_older_kubernetes_or_another_network_makes_a_new_cluster() -> None:
    before = some_settings()

    assert needs_new_cluster(before, some_settings(own_networks=True))
    assert needs_new_cluster(before, some_settings(kubernetes="1.33"))
    assert not needs_new_cluster(some_settings(kubernetes="1.36"), before)
    assert not needs_new_cluster(before, some_settings(kubelets="1.36"))
    assert not needs_new_cluster(before, some_settings(nodes=1, audit=False, fake_nodes=5))


def test_kubelets_alone_are_of_a_version_of_their_own() -> None:
    parts = parts_of(kubelets="1.36")

    of_nodes = {name for name, part in parts.items() if part.argv[0].startswith("/cache/kubelets/")}
    assert of_nodes == {"kubelet-node-a", "kubelet-node-b"}


def test_a_profile_emulates_a_version_where_a_part_can_and_else_sets_gates() -> None:
    parts = parts_of(profile=Profile.DRA_1_34, feature_gates={"DRAAdminAccess": True})

    emulating = {n for n, part in parts.items() if "--emulated-version=1.34" in part.argv}
    assert emulating == {
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kube-scheduler-moorage",
    }
    assert "--feature-gates=DRAAdminAccess=true" in parts["kube-apiserver"].argv
    config = next(
        text for path, text in parts["kubelet-node-a"].files.items() if "json" in path.name
    )
    assert '"ResourceHealthStatus": false' in config


def test_flags_of_the_settings_replace_the_tool_s_own() -> None:
    part = parts_of(apiserver_flags={"authorization-mode": "AlwaysAllow"})["kube-apiserver"]

    assert [word for word in part.argv if "authorization-mode" in word] == [
        "--authorization-mode=AlwaysAllow"
    ]


def test_merging_goes_into_objects_and_replaces_lists() -> None:
    base = {"a": {"b": 1, "c": 2}, "list": [1, 2]}

    assert merged(base, {"a": {"c": 3}, "list": [4]}) == {"a": {"b": 1, "c": 3}, "list": [4]}
    assert base == {"a": {"b": 1, "c": 2}, "list": [1, 2]}


def test_node_drops_foreign_namespaces_before_it_mounts_and_is_ready_last() -> None:
    node = a_blueprint().nodes[0].layout

    lines = setup_script(node).splitlines()

    assert lines[1].startswith("umount -R /run/netns")
    assert lines[-2] == f"touch {node.ready_file}"
    assert lines[-1].startswith("exec env --ignore-signal=CHLD")


def test_all_that_a_node_mounts_lies_in_the_work_folder_and_is_made_before() -> None:
    node = a_blueprint().nodes[0].layout
    made = {str(path) for path in folders(node)}

    sources = [
        line.split("--bind ")[1].split()[0]
        for line in setup_script(node).splitlines()
        if "--bind" in line
    ]

    assert sources
    assert all(source.startswith(str(WORK_DIR)) for source in sources)
    assert set(sources) - {str(node.run), str(node.boot_id)} <= made


def test_part_files_lie_in_the_work_folder() -> None:
    paths = [path for part in parts_of().values() for path in part.files]

    assert all(path.is_relative_to(WORK_DIR) for path in paths)
    assert Path("/srv/cluster/config/kube-proxy.json") in paths
