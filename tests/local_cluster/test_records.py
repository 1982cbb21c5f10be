"""What a work folder remembers of its cluster."""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from pathlib import Path

from local_cluster.layout import layout_of
from local_cluster.programs import Binaries
from local_cluster.records import Record, load_record, save_record
from local_cluster.settings import ClusterSettings


def a_record(work_dir: Path) -> Record:
    binaries = Binaries(*(Path("/cache") / name for name in ("new", "etcd", "cd", "cni", "old")))
    settings = ClusterSettings(work_dir=work_dir, kubelets="1.36")
    return Record(settings, IPv4Network("198.18.0.0/27"), binaries)


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    layout = layout_of(tmp_path)

    save_record(layout, a_record(tmp_path))

    assert load_record(layout) == a_record(tmp_path)


def test_kubelets_of_a_record_that_names_none_are_of_the_control_plane(tmp_path: Path) -> None:
    layout = layout_of(tmp_path)
    save_record(layout, a_record(tmp_path))
    value = json.loads(layout.state_file.read_text())
    del value["binaries"]["kubelets"]
    del value["settings"]["kubelets"]
    layout.state_file.write_text(json.dumps(value))

    found = load_record(layout)

    assert found is not None
    assert found.settings.kubelet_version == "1.37"
    assert found.binaries.kubelets == Path("/cache/new")
