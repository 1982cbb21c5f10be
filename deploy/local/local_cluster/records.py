"""What a work folder remembers between two commands: settings, subnet, programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from ipaddress import IPv4Network
from pathlib import Path

from local_cluster.addresses import Addresses
from local_cluster.blueprint import Blueprint
from local_cluster.errors import LocalClusterError
from local_cluster.files import read_json, write_json
from local_cluster.layout import Layout
from local_cluster.programs import Binaries
from local_cluster.settings import (
    ClusterSettings,
    settings_from_mapping,
    settings_to_mapping,
)


@dataclass(frozen=True)
class Record:
    """Enough to compute the blueprint again."""

    settings: ClusterSettings
    subnet: IPv4Network
    binaries: Binaries


def save_record(layout: Layout, record: Record) -> None:
    binaries = {name: str(path) for name, path in asdict(record.binaries).items()}
    settings = settings_to_mapping(record.settings)
    write_json(
        layout.state_file,
        {"settings": settings, "subnet": str(record.subnet), "binaries": binaries},
    )


def load_record(layout: Layout) -> Record | None:
    value = read_json(layout.state_file)
    if value is None:
        return None
    return Record(
        settings_from_mapping(value["settings"]),
        IPv4Network(value["subnet"]),
        _binaries(value["binaries"]),
    )


def _binaries(paths: Mapping[str, str]) -> Binaries:
    """Records from before kubelets could have a version of their own lack theirs."""
    found = {"kubelets": paths["kubernetes"], **paths}
    return Binaries(**{name: Path(path) for name, path in found.items()})


def blueprint_of(layout: Layout) -> Blueprint:
    """The blueprint of the cluster in this folder."""
    record = load_record(layout)
    if record is None:
        raise LocalClusterError(f"no cluster in {layout.work_dir}")
    return Blueprint(record.settings, layout, Addresses(record.subnet), record.binaries)
