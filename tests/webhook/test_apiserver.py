"""From a review's bytes to the answer's, with everything that may go wrong between them."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64decode
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import Problem
from kube.calls.api import UnavailableError
from tests.asgi import status_and_body
from tests.fakes.webhook_cluster import FakeCluster
from tests.scheduler_plugin.builders import (
    a_claim,
    a_claim_object,
    a_pod_object,
    a_queue,
    a_queue_object,
    a_result,
)
from tests.webhook import test_reviews
from tests.webhook.builders import (
    a_review,
    a_review_body,
    a_template,
    a_template_object,
    rule_context,
)
from webhook import apiserver
from webhook.apiserver import Admission
from webhook.cluster import Cluster
from webhook.http_app import http_app
from webhook.lookups import BusyError

ELSEWHERE = {"schedulerName": "default-scheduler"}
"""As the API server sets it where nobody names a scheduler."""

QUEUE = a_review_body("Queue", {})


async def response(cluster: FakeCluster, kind: str, *objects: Any, **request: Any) -> Any:
    code, answer = await posted(cluster, "/validate", a_review_body(kind, *objects, **request))
    assert code == 200, answer
    return answer["response"]


async def refusal(cluster: FakeCluster, kind: str, *objects: Any, **request: Any) -> str:
    """What the answer says; "" where it allows."""
    found = await response(cluster, kind, *objects, **request)
    return "" if found["allowed"] else str(found["status"]["message"])


async def failed(cluster: FakeCluster, body: bytes) -> tuple[int, str]:
    code, answer = await posted(cluster, "/validate", body)
    return code, answer.get("message", "")


async def posted(cluster: FakeCluster, path: str, body: bytes) -> tuple[int, Any]:
    return await status_and_body(http_app(Admission(cast(Cluster, cluster))), "POST", path, [body])


async def test_each_kind_is_judged_by_its_rules() -> None:
    cluster = FakeCluster(claims={"cam": a_claim("cam")}, templates={"cams": a_template()})
    claimed = {"schedulerName": "moorage"}

    assert await refusal(cluster, "ResourceClaim", a_claim_object(queue="vision")) == ""
    assert "does not exist" in await refusal(cluster, "ResourceClaim", a_claim_object(queue="x"))
    assert await refusal(cluster, "ResourceClaimTemplate", a_template_object(queue="vision")) == ""
    assert "does not exist" in await refusal(
        cluster, "ResourceClaimTemplate", a_template_object(queue="x")
    )
    assert await refusal(cluster, "Pod", a_pod_object(claims=["cam"], spec=claimed)) == ""
    assert "spec.schedulerName" in await refusal(
        cluster, "Pod", a_pod_object(claims=["cam"], spec=ELSEWHERE)
    )
    assert await refusal(cluster, "Queue", a_queue_object("new")) == ""
    assert "spec.parent" in await refusal(cluster, "Queue", a_queue_object("a", parent="a"))


async def test_a_claim_and_a_template_of_a_pod_are_looked_up() -> None:
    cluster = FakeCluster(claims={"cam": a_claim("cam")}, templates={"cams": a_template()})
    entries = [
        {"name": "one", "resourceClaimTemplateName": "cams"},
        {"name": "two", "resourceClaimName": "cam"},
        {"name": "three", "resourceClaimName": "not-yet"},
        {"name": "four"},
    ]

    sentence = await refusal(cluster, "Pod", a_pod_object(resource_claims=entries, spec=ELSEWHERE))

    assert "ResourceClaimTemplate default/cams, ResourceClaim default/cam:" in sentence


async def test_a_queue_of_a_moment_ago_is_found() -> None:
    cluster = FakeCluster(rule_context(), unseen={"new": a_queue("new")})

    assert await refusal(cluster, "ResourceClaim", a_claim_object(queue="new")) == ""


async def test_a_parent_of_a_moment_ago_is_found() -> None:
    cluster = FakeCluster(rule_context(), unseen={"research": a_queue("research")})

    found = await response(cluster, "Queue", a_queue_object("vision", parent="research"))

    assert found == {"uid": "uid-of-the-review", "allowed": True}


async def test_queues_of_a_moment_ago_that_claims_are_shared_with_are_found() -> None:
    cluster = FakeCluster(rule_context(), unseen={"robots": a_queue("robots")})
    sharing = {"policy": "Deny", "queues": ["robots", "robbots"]}

    found = await response(cluster, "Queue", a_queue_object("vision", claimSharing=sharing))

    said = 'spec.claimSharing.queues: Queue "robbots" does not exist (yet).'
    assert (found["allowed"], found["warnings"]) == (True, [said])


async def test_no_queue_is_refused_since_those_it_shares_with_cannot_be_looked_up() -> None:
    """What is only warned about is worth no refusal; a parent is, since cycles are."""
    cluster = FakeCluster(lost=UnavailableError("it is away"))
    cluster.look_for_queue = lost_but_for_parents(cluster)  # type: ignore[method-assign]
    sharing = {"policy": "Deny", "queues": ["robots"]}

    found = await response(cluster, "Queue", a_queue_object("new", claimSharing=sharing))

    assert found["allowed"] is True


def lost_but_for_parents(cluster: FakeCluster) -> Any:
    lost, read = cluster.lost, cluster.look_for_queue

    async def look(name: Any, namespace: str = "") -> None:
        cluster.lost = lost if name else None
        await read(name, namespace)

    return look


async def test_a_move_sees_all_queues_of_this_moment() -> None:
    cluster = FakeCluster(
        rule_context(a_queue("vision")), unseen={"child": a_queue("child", parent="vision")}
    )
    old = a_queue_object("vision")

    sentence = await refusal(cluster, "Queue", a_queue_object("vision", parent="child"), old)

    assert "vision -> child -> vision" in sentence


async def test_a_queue_with_claims_is_not_deleted() -> None:
    owned = a_claim("cam", queue="vision", results=[a_result()])

    sentence = await refusal(FakeCluster(owned=(owned,)), "Queue", None, a_queue_object("vision"))

    assert "owns 1 allocated claim: default/cam." in sentence


async def test_who_asks_for_too_much_is_told_to_try_again() -> None:
    cluster = FakeCluster(lost=BusyError("Too many names."))
    body = a_review_body("Pod", a_pod_object(claims=["cam"], queue="vision"))

    assert await failed(cluster, body) == (429, "Too many names. Try again.")


async def test_a_queue_without_claims_is() -> None:
    assert await refusal(FakeCluster(), "Queue", None, a_queue_object("vision")) == ""


@pytest.mark.parametrize(
    ("kind", "request_fields"),
    [
        ("Deployment", {}),
        ("Pod", {"operation": "UPDATE"}),
        ("Pod", {"operation": "CONNECT"}),
        ("Pod", {"subResource": "status"}),
        ("Queue", {"operation": "DELETE"}),
        ("ResourceClaim", {"object": None}),
    ],
)
async def test_what_no_rule_is_about_is_refused_with_a_sentence(
    kind: str, request_fields: Any
) -> None:
    """Somebody registered the webhook for it; to allow would look as if it had been judged."""
    sentence = await refusal(FakeCluster(), kind, {}, **request_fields)

    assert kind in sentence
    assert sentence.endswith(".")


async def patch(cluster: FakeCluster, kind: str, *objects: Any, **request: Any) -> Any:
    """The operations that a new object is changed by; none is an answer, too."""
    code, answer = await posted(cluster, "/mutate", a_review_body(kind, *objects, **request))
    assert code == 200, answer
    found = answer["response"]
    assert found["allowed"] is True
    return json.loads(b64decode(found.get("patch", "W10=")))


async def test_a_new_pod_gets_what_it_lacks() -> None:
    """A claim, a template and a queue of a moment ago are looked up as ever."""
    labels = {"moorage.dev/queue": "new"}
    cluster = FakeCluster(
        templates={"cams": a_template()}, unseen={"new": a_queue("new")}, labels=labels
    )
    entries = [{"name": "one", "resourceClaimTemplateName": "cams"}]

    found = await patch(cluster, "Pod", a_pod_object(resource_claims=entries, spec=ELSEWHERE))

    assert found == [
        {"op": "add", "path": "/spec/schedulerName", "value": "moorage"},
        {
            "op": "add",
            "path": "/spec/schedulingGates",
            "value": [{"name": "moorage.dev/quota"}],
        },
        {"op": "add", "path": "/metadata/labels", "value": labels},
    ]


async def test_pods_of_others_wait_for_no_look_at_the_cluster() -> None:
    lost = FakeCluster(lost=UnavailableError("no connection"))
    elsewhere = a_pod_object(claims=["cam"], spec={"schedulerName": "volcano"})

    assert await patch(lost, "Pod", elsewhere) == []
    assert await patch(lost, "Pod", a_pod_object(claims=["cam"], node="node-a")) == []


@pytest.mark.parametrize(
    ("kind", "request_fields"),
    [
        ("Queue", {}),
        ("Pod", {"operation": "UPDATE"}),
        ("Pod", {"subResource": "status"}),
        ("Pod", {"object": None}),
        ("Pod", {"object": {"spec": {"containers": 3}}}),
    ],
)
async def test_what_is_no_new_pod_stays_as_it_is(kind: str, request_fields: Any) -> None:
    cluster = FakeCluster(claims={"cam": a_claim("cam")})

    assert await patch(cluster, kind, a_pod_object(claims=["cam"]), **request_fields) == []


async def test_without_an_answer_to_a_mutation_the_failure_policy_decides() -> None:
    body = a_review_body("Pod", a_pod_object(claims=["cam"]))

    for cluster in (
        FakeCluster(not_ready="Not read yet: queues."),
        FakeCluster(lost=UnavailableError("no connection")),
    ):
        assert (await posted(cluster, "/mutate", body))[0] == 503


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"apiVersion": "admission.k8s.io/v1"}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"request":' * 100_000,
        QUEUE.replace(b"admission.k8s.io/v1", b"admission.k8s.io/v1beta1"),
        QUEUE.replace(b"AdmissionReview", b"Queue"),
        QUEUE.replace(b"uid-of-the-review", b""),
        QUEUE.replace(b"CREATE", b"create"),
        QUEUE.replace(b'"object": {}', b'"object": "queue"'),
        QUEUE.replace(b'"object": {}', b'"object": {"a": "\xff"}'),
    ],
)
async def test_what_is_no_review_is_a_bad_request(body: bytes) -> None:
    code, sentence = await failed(FakeCluster(), body)

    assert code == 400
    assert sentence


@given(
    body=st.binary(max_size=200)
    | test_reviews.json_values.map(lambda value: json.dumps(value).encode())
)
async def test_whatever_comes_is_a_bad_request(body: bytes) -> None:
    assert (await failed(FakeCluster(), body))[0] == 400


async def test_a_bad_request_is_told_its_field() -> None:
    code, sentence = await failed(FakeCluster(), QUEUE.replace(b"CREATE", b"create"))

    assert code == 400
    assert "request.operation: Input should be 'CREATE'" in sentence


async def test_before_the_stores_are_filled_the_failure_policy_decides() -> None:
    cluster = FakeCluster(not_ready="Not read yet: queues.")

    code, sentence = await failed(cluster, a_review_body("Queue", a_queue_object()))

    assert code == 503
    assert "Not read yet: queues." in sentence


@pytest.mark.parametrize(
    "lost", [UnavailableError("no connection"), TimeoutError()], ids=["away", "slow"]
)
@pytest.mark.parametrize(
    "body",
    [
        a_review_body("ResourceClaim", a_claim_object(queue="vision")),
        a_review_body("Pod", a_pod_object(claims=["cam"])),
        a_review_body("Queue", old=a_queue_object()),
    ],
    ids=["claim", "pod", "queue"],
)
async def test_what_cannot_be_looked_up_is_left_to_the_failure_policy(
    lost: UnavailableError | TimeoutError, body: bytes
) -> None:
    code, sentence = await failed(FakeCluster(lost=lost), body)

    assert code == 503
    assert "try again" in sentence


async def test_an_error_of_ours_is_an_answer_too() -> None:
    code, _ = await failed(
        FakeCluster(lost=RuntimeError("bug")), a_review_body("Pod", a_pod_object())
    )

    assert code == 500


# What is only warned about.

CAMERA: Any = {
    "metadata": {"name": "camera", "namespace": "default"},
    "spec": {"discoveryHandler": {"name": "barcode"}, "capacity": 0},
}


async def warned(cluster: FakeCluster, *objects: Any, **request: Any) -> Any:
    code, answer = await posted(cluster, "/warn", a_review_body(*objects, **request))
    assert code == 200, answer
    assert answer["response"]["allowed"] is True
    return answer["response"].get("warnings", [])


async def test_a_configuration_is_warned_about_and_never_refused() -> None:
    said = await warned(FakeCluster(), "Configuration", CAMERA)
    known = await warned(FakeCluster(handlers={"barcode": ""}), "Configuration", CAMERA)

    assert [text.partition(":")[0] for text in said[:-1]] == [
        "spec.capacity",
        "spec.discoveryHandler.name",
    ]
    assert [said[0], said[-1]] == known


async def test_one_configuration_is_read_at_a_time_and_the_others_get_no_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While a thread reads, the process judges pods with half a processor."""

    async def warnings() -> tuple[str, ...]:
        return tuple((await admission.warn(review)).response.warnings or ())

    begun, on = threading.Event(), threading.Event()

    def slowly(body: Any) -> tuple[Problem, ...]:
        begun.set()
        assert on.wait(30)
        return (Problem("spec", "odd"),)

    monkeypatch.setattr(apiserver, "configuration_flaws", slowly)
    admission = Admission(cast(Cluster, FakeCluster()))
    review = a_review("Configuration", CAMERA)

    gone = asyncio.create_task(warnings())
    await asyncio.to_thread(begun.wait, 30)
    gone.cancel()
    await asyncio.wait([gone])
    for _ in range(5):
        assert await warnings() == ()
    on.set()

    said: tuple[str, ...] = ()
    async with asyncio.timeout(30):
        while not said:
            await asyncio.sleep(0.01)
            said = await warnings()
    assert said[0] == "spec: odd"


async def test_a_long_configuration_is_not_read() -> None:
    handler = {"name": "udev", "discoveryDetails": "k: 1\n" * 800}
    long = {**CAMERA, "spec": {"discoveryHandler": handler, "capacity": 0}}

    assert await warned(FakeCluster(), "Configuration", long) == []


@pytest.mark.parametrize(
    ("objects", "fields"),
    [
        (("Configuration", CAMERA, CAMERA), {}),
        (("Configuration", None, CAMERA), {}),
        (("Configuration", CAMERA), {"subResource": "status"}),
        (("Deployment", CAMERA), {}),
        (("Pod", CAMERA), {}),
    ],
)
async def test_what_no_warning_is_about_is_admitted_without_one(objects: Any, fields: Any) -> None:
    assert await warned(FakeCluster(), *objects, **fields) == []


async def test_configurations_are_not_judged_where_things_are_refused() -> None:
    """So nobody registers them there, where an outage would stop them."""
    assert "No rule is about" in await refusal(FakeCluster(), "Configuration", CAMERA)
