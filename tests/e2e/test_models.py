"""The models and the API server: what one admits and what it refuses, so does the other.

That holds for what one object shows: the definitions are generated from the models, but for the
rules in CEL, which the models say in Python. Texts are compared by the models alone:
a quota of 80Gi above a limit of 40Gi is refused by the webhook.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from driver.models import ConfigurationModel, InstanceModel
from kube.calls.api import ApiClient, InvalidError, WriteOptions, connect
from kube.models import Model, flaws
from kube.resources import Resource
from local_cluster.api import Cluster
from scheduler_plugin.models import QueueModel
from tests.deploy.documents import CRDS
from tests.schema_objects import admitted, nearly_admitted, schema_of

OBJECTS = 300
DRY_RUN = WriteOptions(dry_run=True)
KINDS: list[tuple[type[Model], Resource]] = [
    (QueueModel, Resource("moorage.dev", "v1alpha1", "queues", namespaced=False)),
    (ConfigurationModel, Resource("akri.sh", "v0", "configurations")),
    (InstanceModel, Resource("akri.sh", "v0", "instances")),
]


@pytest.fixture(scope="module")
def cluster_with_definitions(apiserver: Cluster) -> Cluster:
    apiserver.kubectl("apply", "-f", str(CRDS))
    apiserver.kubectl("wait", "--for=condition=Established", "crd", "--all")
    return apiserver


def drawn(schema: Any) -> list[Any]:
    """Specs as `given` draws them, the same in each run."""
    found: list[Any] = []

    @settings(
        max_examples=OBJECTS,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(admitted(schema), nearly_admitted(schema)))
    def draw(spec: Any) -> None:
        found.append(spec)

    draw()
    return found


@pytest.mark.parametrize(("model", "kind"), KINDS)
async def test_model_and_api_server_admit_the_same(
    model: type[Model], kind: Resource, cluster_with_definitions: Cluster
) -> None:
    bodies = [
        body_of(model, kind, spec) for spec in drawn(schema_of(f"{kind.plural}.{kind.group}"))
    ]
    said: dict[bool, list[str]] = {True: [], False: []}
    differ: list[Any] = []
    async with connect(cluster_with_definitions.kubeconfig) as client:
        for body in bodies:
            refusal = await refusal_of(client, kind, body)
            problems = list(flaws(model, body))
            said[bool(problems)].append(refusal)
            differ += [(body, problems, refusal)] if bool(problems) != bool(refusal) else []

    assert differ == []
    assert len(said[True]) > OBJECTS / 10
    assert len(said[False]) > OBJECTS / 10


@pytest.mark.parametrize(
    ("number", "spec", "path"),
    [
        (0, {"preemptMinRuntime": "5x"}, "spec.preemptMinRuntime"),
        (0, {"claimSharing": {"ownerExitGracePeriod": "5x"}}, "spec.claimSharing.owner"),
        (1, {"offlineGracePeriod": "5x"}, "spec.offlineGracePeriod"),
    ],
)
async def test_the_api_server_refuses_what_is_no_duration_in_words(
    number: int, spec: dict[str, Any], path: str, cluster_with_definitions: Cluster
) -> None:
    """No webhook answers here, and no expression is shown."""
    async with connect(cluster_with_definitions.kubeconfig) as client:
        model, kind = KINDS[number]
        said = await refusal_of(client, kind, body_of(model, kind, spec))

    assert path in said
    assert '"5x" is no duration; write it like 90s, 5m or 1h30m' in said
    assert "[0-9]" not in said
    assert "evaluating rule" not in said


def body_of(model: type[Model], kind: Resource, spec: Any) -> dict[str, Any]:
    metadata = {"name": "vision"} | ({"namespace": "default"} if kind.namespaced else {})
    return {
        "apiVersion": kind.api_version,
        "kind": model.__name__.removesuffix("Model"),
        "metadata": metadata,
        "spec": spec,
    }


async def refusal_of(client: ApiClient, kind: Resource, body: Any) -> str:
    """What the API server says about an object; "" where it admits it."""
    try:
        await client.create(kind, body, options=DRY_RUN)
    except InvalidError as error:
        return str(error)
    return ""
