"""The kinds that viewers must be allowed to list are those that the plugin reads."""

from __future__ import annotations

import pytest

from kube import api
from scheduler_plugin.cluster import apiserver
from scheduler_plugin.dashboard import parts


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        (parts.QUEUES, apiserver.QUEUES),
        (parts.INSTANCES, apiserver.INSTANCES),
        (parts.CLAIMS, api.CLAIMS),
        (parts.PODS, api.PODS),
        (parts.EVENTS, api.EVENTS),
    ],
)
def test_a_kind_is_named_as_it_is_read(kind: parts.Kind, resource: api.Resource) -> None:
    assert (kind.group, kind.plural, kind.namespaced) == (
        resource.group,
        resource.plural,
        resource.namespaced,
    )


def test_every_part_takes_a_kind() -> None:
    assert set(parts.SHOWS) == set(parts.Part)
