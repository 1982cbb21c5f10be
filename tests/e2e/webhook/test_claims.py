"""Who may name which queue on a new claim or template."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kube.calls.api import ApiClient
from kube.kinds import CLASSES, QUEUES
from tests.e2e.webhook.objects import (
    CLAIMS,
    CLOSED,
    LABEL_PATH,
    OPEN,
    TEMPLATES,
    VERSIONS,
    a_claim,
    a_new_class,
    a_queue,
    a_template,
    asking,
    new_name,
    refusal,
)

EACH_VERSION = pytest.mark.parametrize("version", VERSIONS)
EACH_KIND = pytest.mark.parametrize(
    ("make", "resources", "path"),
    [(a_claim, CLAIMS, LABEL_PATH), (a_template, TEMPLATES, f"spec.{LABEL_PATH}")],
    ids=["claim", "template"],
)


@EACH_VERSION
@EACH_KIND
async def test_a_queue_that_exists_may_be_named(
    make: Any, resources: Any, path: str, version: str, admin: ApiClient
) -> None:
    await admin.create(resources[version], make("open", version=version))


@EACH_VERSION
@EACH_KIND
async def test_a_queue_that_does_not_exist_may_not(
    make: Any, resources: Any, path: str, version: str, admin: ApiClient
) -> None:
    refused = await refusal(admin.create(resources[version], make("nobody", version=version)))

    assert refused.fields == (path,)
    assert 'Queue "nobody" does not exist.' in refused.message


@EACH_KIND
async def test_without_a_label_anything_goes(
    make: Any, resources: Any, path: str, admin: ApiClient
) -> None:
    await admin.create(resources["v1"], make())


@EACH_KIND
async def test_the_queue_must_admit_the_namespace(
    make: Any, resources: Any, path: str, admin: ApiClient
) -> None:
    await admin.create(resources["v1"], make("picky", namespace=OPEN))

    refused = await refusal(admin.create(resources["v1"], make("picky", namespace=CLOSED)))

    assert refused.fields == (path,)
    assert f'Namespace "{CLOSED}" may not use queue "picky".' in refused.message


@EACH_KIND
async def test_no_namespace_may_name_a_queue_without_a_selector(
    make: Any, resources: Any, path: str, admin: ApiClient
) -> None:
    refused = await refusal(admin.create(resources["v1"], make("shut", namespace=OPEN)))

    assert refused.fields == (path,)
    assert f'Namespace "{OPEN}" may not use queue "shut".' in refused.message
    assert "spec.namespaceSelector: {} allows all namespaces" in refused.message


@EACH_KIND
@pytest.mark.parametrize("queue", ["unnamed", "unnamed-child"])
async def test_a_queue_may_mind_being_named(
    queue: str, make: Any, resources: Any, path: str, admin: ApiClient
) -> None:
    refused = await refusal(admin.create(resources["v1"], make(queue)))

    assert refused.fields == (path,)
    assert "labelAtCreate: Deny" in refused.message


@EACH_KIND
async def test_a_queue_of_a_moment_ago_may_be_named(
    make: Any, resources: Any, path: str, admin: ApiClient
) -> None:
    """As in one file with both: the watch need not have brought it."""
    name = new_name("queue")
    await admin.create(QUEUES, a_queue(name))

    await admin.create(resources["v1"], make(name))


EACH_ASKING = pytest.mark.parametrize(
    ("make", "resources", "place"),
    [
        (a_claim, CLAIMS, ("spec", "devices")),
        (a_template, TEMPLATES, ("spec", "spec", "devices")),
        (a_new_class, {v: replace(CLASSES, version=v) for v in VERSIONS}, ("spec",)),
    ],
    ids=["claim", "template", "class"],
)


@EACH_VERSION
@EACH_ASKING
async def test_what_is_asked_of_devices_is_looked_at(
    make: Any, resources: Any, place: tuple[str, ...], version: str, admin: ApiClient
) -> None:
    right = asking(make(version=version), *place, mode="0660")
    wrong = asking(make(version=version), *place, mode="rw", env={"MOORAGE_A": "1"})
    await admin.create(resources[version], right)

    refused = await refusal(admin.create(resources[version], wrong))

    parameters = f"{'.'.join(place)}.config[0].opaque.parameters"
    assert refused.fields == (f"{parameters}.env[MOORAGE_A]", f"{parameters}.mode")
    assert (
        f"{parameters}.mode: It must be a mode in four octal digits, such as 0660."
        in refused.message
    )


async def test_a_class_is_looked_at_when_it_changes(admin: ApiClient) -> None:
    right = asking(a_new_class(), "spec", mode="0660")
    await admin.create(CLASSES, right)
    path = CLASSES.at(right["metadata"]["name"])
    config = asking({}, mode=1)["config"]

    refused = await refusal(admin.merge_patch(path, {"spec": {"config": config}}))

    assert refused.fields == ("spec.config[0].opaque.parameters.mode",)
