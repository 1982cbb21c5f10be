"""Values for tests of the local cluster's plans: defaults, and what a test changes."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from local_cluster.addresses import Addresses
from local_cluster.blueprint import Blueprint
from local_cluster.layout import Layout
from local_cluster.parts import PartSpec
from local_cluster.plan import planned_parts
from local_cluster.programs import Binaries
from local_cluster.settings import ClusterSettings

WORK_DIR = Path("/srv/cluster")
PROGRAMS = ("kubernetes", "etcd", "cd", "cni", "kubelets")


def some_settings(**changes: Any) -> ClusterSettings:
    return ClusterSettings(**{"work_dir": WORK_DIR, **changes})


def a_blueprint(**changes: Any) -> Blueprint:
    binaries = Binaries(*(Path("/cache") / name for name in PROGRAMS))
    addresses = Addresses(IPv4Network("198.18.0.0/27"))
    return Blueprint(some_settings(**changes), Layout(WORK_DIR), addresses, binaries)


def parts_of(**changes: Any) -> dict[str, PartSpec]:
    return {part.name: part for part in planned_parts(a_blueprint(**changes))}
