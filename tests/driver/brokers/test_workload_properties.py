"""Any JSON in a Configuration is either a problem with a path, or bodies can be made of it."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.brokers.pod_specs import PLACEHOLDER
from driver.brokers.plans import plan_configuration, plan_device
from driver.brokers.workloads import wanted
from tests.driver.brokers.broker_builders import a_broker, a_device
from tests.driver.builders import a_configuration_object

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.floats(allow_nan=False)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)


def mostly(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """These values, and now and then any other."""
    return st.sampled_from(range(10)).flatmap(lambda tenth: JSON if tenth == 0 else strategy)


def an_object(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return mostly(st.fixed_dictionaries({}, optional=optional))


def a_list(of: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return mostly(st.lists(of, max_size=2))


AMOUNTS = mostly(
    st.dictionaries(st.sampled_from([PLACEHOLDER, "cpu"]), mostly(st.just("1")), max_size=2)
)
CONTAINER = an_object(
    resources=an_object(limits=AMOUNTS, requests=AMOUNTS, claims=a_list(JSON)),
    restartPolicy=mostly(st.just("Always")),
)
REQUIRED = an_object(nodeSelectorTerms=a_list(an_object(matchFields=a_list(JSON))))
AFFINITY = an_object(
    nodeAffinity=an_object(requiredDuringSchedulingIgnoredDuringExecution=REQUIRED)
)
POD_SPEC = mostly(
    st.fixed_dictionaries(
        {"containers": mostly(st.lists(CONTAINER, min_size=1, max_size=2))},
        optional={
            "initContainers": a_list(CONTAINER),
            "resourceClaims": a_list(JSON),
            "affinity": AFFINITY,
        },
    )
)
METADATA = an_object(labels=mostly(st.dictionaries(st.text(max_size=3), JSON, max_size=2)))
TEMPLATE = mostly(st.fixed_dictionaries({"spec": POD_SPEC}, optional={"metadata": METADATA}))
SERVICE = an_object(selector=mostly(st.dictionaries(st.text(max_size=3), JSON, max_size=2)))
BROKER = mostly(
    st.fixed_dictionaries({"brokerPodSpec": POD_SPEC})
    | st.fixed_dictionaries(
        {"brokerJobSpec": mostly(st.fixed_dictionaries({"template": TEMPLATE}))}
    )
)
SPEC = st.fixed_dictionaries(
    {},
    optional={
        "brokerSpec": BROKER,
        "instanceServiceSpec": SERVICE,
        "configurationServiceSpec": SERVICE,
        "maxBrokers": mostly(st.integers(0, 9)),
    },
)


@settings(max_examples=300)
@given(SPEC, st.booleans())
def test_any_configuration_has_a_problem_or_can_be_made(spec: dict[str, Any], is_dra: bool) -> None:
    found = wanted(a_configuration_object(**spec))
    assert not (found.workloads and found.problems)
    assert all(problem.path.startswith("spec") and problem.message for problem in found.problems)
    if found.workloads is None:
        return
    device = a_device(is_dra=is_dra)
    pods = [a_broker(found.workloads, device)] if found.workloads.pod else []

    plan_device(found.workloads, device, pods, lambda _: 0.0)
    plan_configuration(found.workloads, (), pods)
