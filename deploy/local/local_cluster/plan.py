"""The whole cluster as a list of parts, and what a change of settings means for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from local_cluster.blueprint import Blueprint
from local_cluster.control_plane import cluster_parts, fake_kubelets, kube_proxy
from local_cluster.node_parts import node_parts, udevd
from local_cluster.parts import PartSpec
from local_cluster.settings import ClusterSettings, minor


def planned_parts(blueprint: Blueprint) -> tuple[PartSpec, ...]:
    """Every part in the order of starting."""
    on_nodes = [part for node in blueprint.nodes for part in node_parts(blueprint, node)]
    parts = [*cluster_parts(blueprint), *on_nodes]
    if blueprint.settings.own_networks and "kube-proxy" in blueprint.settings.parts:
        parts += [kube_proxy(blueprint, node) for node in blueprint.nodes]
    if blueprint.settings.udevd:
        parts.append(udevd(blueprint.nodes[0]))
    if blueprint.settings.fake_nodes:
        parts.append(fake_kubelets(blueprint))
    return tuple(sorted(parts, key=lambda part: part.wave))


def waves(parts: Iterable[PartSpec]) -> Iterator[tuple[PartSpec, ...]]:
    """Parts that may start together."""
    for _, wave in groupby(parts, key=lambda part: part.wave):
        yield tuple(wave)


def needs_new_cluster(before: ClusterSettings, after: ClusterSettings) -> bool:
    """Whether stored objects might not survive; everything else is a restart of some parts."""
    is_older = minor(after.kubernetes) < minor(before.kubernetes)
    return is_older or before.own_networks != after.own_networks
