"""What is read of a Configuration, and what keeps it from being run."""

from __future__ import annotations

from typing import Any

import pytest

from driver.brokers.pod_specs import PLACEHOLDER
from driver.brokers.workloads import MOST_BROKERS, Wanted, Workloads, problems, wanted
from tests.driver.brokers.broker_builders import (
    SERVICE_SPEC,
    a_container,
    a_job_spec,
    a_pod_spec,
)
from tests.driver.builders import a_configuration_object

POD = "spec.brokerSpec.brokerPodSpec"
JOB = "spec.brokerSpec.brokerJobSpec"
NO_NUMBER = f"{PLACEHOLDER} is a number of slots from 1 on."


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"brokerSpec": None, "instanceServiceSpec": None, "configurationServiceSpec": None},
        {"brokerSpec": {}, "instanceServiceSpec": {}},
        {"maxBrokers": 3},
    ],
)
def test_a_configuration_without_brokers_wants_nothing(spec: dict[str, Any]) -> None:
    assert wanted(a_configuration_object(**spec)) == Wanted(namespace="default", name="loop")


def test_all_that_is_wanted_is_read() -> None:
    body = a_configuration_object(
        brokerSpec={"brokerPodSpec": a_pod_spec()},
        instanceServiceSpec=SERVICE_SPEC,
        configurationServiceSpec={"ports": [{"port": 6052}]},
        maxBrokers=7,
    )

    assert wanted(body).workloads == Workloads(
        namespace="default",
        configuration="loop",
        uid="uid-of-loop",
        generation=3,
        pod=a_pod_spec(),
        instance_service=SERVICE_SPEC,
        configuration_service={"ports": [{"port": 6052}]},
        most=7,
    )


@pytest.mark.parametrize(
    ("spec", "most"),
    [({}, MOST_BROKERS), ({"maxBrokers": None}, MOST_BROKERS), ({"maxBrokers": 0}, 0)],
)
def test_the_most_brokers_have_a_default(spec: dict[str, Any], most: int) -> None:
    found = wanted(a_configuration_object(brokerSpec={"brokerPodSpec": a_pod_spec()}, **spec))

    assert found.workloads is not None
    assert found.workloads.most == most


def test_labels_are_copied_except_those_that_say_what_the_configuration_is() -> None:
    body = a_configuration_object(brokerSpec={"brokerPodSpec": a_pod_spec()})
    body["metadata"]["labels"] = {
        "kueue.x-k8s.io/queue-name": "vision",
        "app.kubernetes.io/managed-by": "Helm",
        "helm.sh/chart": "akri-0.13",
    }

    found = wanted(body).workloads

    assert found is not None
    assert found.labels == {"kueue.x-k8s.io/queue-name": "vision"}


def test_the_pod_spec_is_that_of_the_pods_or_of_the_pods_of_the_job() -> None:
    pod = wanted(a_configuration_object(brokerSpec={"brokerPodSpec": a_pod_spec("2")})).workloads
    job = wanted(a_configuration_object(brokerSpec={"brokerJobSpec": a_job_spec("3")})).workloads
    service = wanted(a_configuration_object(instanceServiceSpec=SERVICE_SPEC)).workloads

    assert pod is not None
    assert job is not None
    assert service is not None
    assert pod.pod_spec == a_pod_spec("2")
    assert job.pod_spec == a_pod_spec("3", restartPolicy="Never")
    assert service.pod_spec is None


def a_pod_with(**fields: Any) -> dict[str, Any]:
    return {"brokerSpec": {"brokerPodSpec": a_pod_spec(**fields)}}


def a_broker_with(**container: Any) -> dict[str, Any]:
    return {"brokerSpec": {"brokerPodSpec": {"containers": [a_container(**container)]}}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"brokerSpec": "camera"}, "spec.brokerSpec: Expected `object | null`, got `str`."),
        (
            {"instanceServiceSpec": ["x"]},
            "spec.instanceServiceSpec: Expected `object | null`, got `array`.",
        ),
        (
            {"configurationServiceSpec": {"selector": "x"}},
            "spec.configurationServiceSpec.selector: Expected `object | null`, got `str`.",
        ),
        (
            {"brokerSpec": {"brokerPodSpec": a_pod_spec(), "brokerJobSpec": a_job_spec()}},
            "spec.brokerSpec: Set brokerPodSpec or brokerJobSpec, not both.",
        ),
        (
            {"brokerSpec": {"brokerPodSpec": {"hostNetwork": True}}},
            f"{POD}: Object missing required field `containers`.",
        ),
        (
            {"brokerSpec": {"brokerPodSpec": {"containers": []}}},
            f"{POD}.containers: Expected `array` of length >= 1.",
        ),
        (
            {"brokerSpec": {"brokerPodSpec": {"containers": ["broker"]}}},
            f"{POD}.containers[0]: Expected `object`, got `str`.",
        ),
        (
            a_broker_with(resources=[]),
            f"{POD}.containers[0].resources: Expected `object | null`, got `array`.",
        ),
        (
            a_broker_with(resources={"limits": 1}),
            f"{POD}.containers[0].resources.limits: Expected `object | null`, got `int`.",
        ),
        (
            a_pod_with(initContainers=5),
            f"{POD}.initContainers: Expected `array | null`, got `int`.",
        ),
        (a_pod_with(affinity="east"), f"{POD}.affinity: Expected `object | null`, got `str`."),
        (
            {"brokerSpec": {"brokerJobSpec": {"parallelism": 2}}},
            f"{JOB}: Object missing required field `template`.",
        ),
        (
            {"brokerSpec": {"brokerJobSpec": {"template": {"metadata": {}}}}},
            f"{JOB}.template: Object missing required field `spec`.",
        ),
        (
            {"brokerSpec": {"brokerJobSpec": a_job_spec("0")}},
            f"{JOB}.template.spec.containers[0].resources.limits: {NO_NUMBER} "
            f"{JOB}.template.spec.containers[0].resources.requests: {NO_NUMBER}",
        ),
        *(
            (
                a_broker_with(resources={"requests": {PLACEHOLDER: amount}}),
                f"{POD}.containers[0].resources.requests: {NO_NUMBER}",
            )
            for amount in ("0", 0, "-1", "many", "", None, True, 1.5, ["1"])
        ),
        (
            a_pod_with(
                initContainers=[
                    a_container(),
                    a_container(resources={"limits": {PLACEHOLDER: "x"}}),
                ]
            ),
            f"{POD}.initContainers[1].resources.limits: {NO_NUMBER}",
        ),
        (
            {"brokerSpec": {}, "maxBrokers": "many"},
            "spec.maxBrokers: Expected `int | null`, got `str`.",
        ),
    ],
)
def test_each_problem_is_reported_with_its_path(spec: dict[str, Any], expected: str) -> None:
    assert " ".join(map(str, problems(spec))) == expected


def test_a_configuration_with_problems_runs_nothing() -> None:
    body = a_configuration_object(brokerSpec={"brokerJobSpec": a_job_spec("0")})

    found = wanted(body)

    assert found.workloads is None
    assert found.problems == tuple(problems(body["spec"]))
