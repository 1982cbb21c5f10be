"""What an allocation says of its devices: whose word counts, for which, and where it was wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.device_configs import NOTHING_ASKED, DeviceConfig, merged
from driver.preparing.grants.claim_configs import ClaimConfigs
from driver.preparing.grants.claims import Failure, allocated_claim
from tests.driver.builders import NODE
from tests.driver.claim_builders import a_claim, a_config, a_reference, a_result, with_configs

WANTED = a_reference(1)
ENV = st.dictionaries(st.sampled_from("ABC"), st.sampled_from("xyz"), max_size=2)
REQUESTS = st.lists(st.sampled_from(["req", "other", "req/first", "req/second"]), max_size=2)
ENTRIES = st.lists(
    st.builds(
        a_config,
        st.fixed_dictionaries({"env": ENV}),
        source=st.sampled_from(["FromClass", "FromClaim"]),
        requests=REQUESTS,
        driver=st.sampled_from(["moorage.dev", "gpu.example.com"]),
    ),
    max_size=5,
)


def configs(*entries: dict[str, Any], **claim: Any) -> ClaimConfigs:
    return ClaimConfigs(with_configs(a_claim(WANTED), *entries, **claim))


def env(**variables: str) -> dict[str, Any]:
    return {"env": variables}


def test_without_any_nothing_is_asked() -> None:
    assert configs().of("req") == NOTHING_ASKED
    assert configs(a_config(env(A="1"), driver="gpu.example.com")).of("req") == NOTHING_ASKED


def test_claim_wins_over_class_wherever_they_stand() -> None:
    found = configs(
        a_config({**env(A="claim"), "mode": "0600"}),
        a_config({**env(A="class", B="class"), "uid": 7}, source="FromClass", requests=["req"]),
    )

    assert found.of("req") == DeviceConfig(env=(("A", "claim"), ("B", "class")), mode=0o600, uid=7)


def test_later_entry_wins_within_the_claim() -> None:
    assert configs(a_config(env(A="1")), a_config(env(A="2"))).of("req").env == (("A", "2"),)


@pytest.mark.parametrize(
    ("requests", "result", "is_about"),
    [
        ([], "req", True),
        (["req"], "req", True),
        (["other"], "req", False),
        (["req"], "req/first", True),
        (["req/first"], "req/first", True),
        (["req/second"], "req/first", False),
        (["other", "req"], "req", True),
    ],
)
def test_requests_of_an_entry_are_respected(
    requests: list[str], result: str, is_about: bool
) -> None:
    found = configs(a_config(env(A="1"), requests=requests)).of(result)

    assert found == (DeviceConfig(env=(("A", "1"),)) if is_about else NOTHING_ASKED)


@given(ENTRIES, st.sampled_from(["req", "other", "req/first"]))
def test_each_variable_is_of_the_most_specific_that_says_it(
    entries: list[dict[str, Any]], request_name: str
) -> None:
    about = [
        entry
        for entry in entries
        if entry["opaque"]["driver"] == "moorage.dev"
        and (
            not entry["requests"]
            or {request_name, request_name.partition("/")[0]} & {*entry["requests"]}
        )
    ]
    expected: dict[str, str] = {}
    for source in ("FromClass", "FromClaim"):
        for entry in about:
            if entry["source"] == source:
                expected |= entry["opaque"]["parameters"]["env"]

    found = configs(*entries)

    assert found.problems == []
    assert dict(found.of(request_name).env) == expected
    assert found.of(request_name) == merged([found.of(request_name)])


def test_problem_of_a_claim_is_told_with_the_path_in_its_spec() -> None:
    ours, theirs = a_config(env(**{"A-B": ""})), a_config({}, driver="gpu.example.com")
    claim = with_configs(a_claim(WANTED), ours, written=[theirs, ours])

    assert allocated_claim(claim, WANTED, {NODE}) == Failure(
        "spec.devices.config[1].opaque.parameters.env[A-B]: A variable's name has letters, digits"
        " and _, and does not begin with a digit."
    )


def test_problem_of_a_class_names_it() -> None:
    good = a_config({}, source="FromClass", requests=["req"])
    bad = a_config({"uid": "root"}, source="FromClass", requests=["req"])
    request = {"name": "req", "exactly": {"deviceClassName": "disk"}}
    claim = with_configs(a_claim(WANTED), good, bad)
    claim["spec"]["devices"]["requests"] = [request]

    assert allocated_claim(claim, WANTED, {NODE}) == Failure(
        "DeviceClass disk: spec.config[1].opaque.parameters.uid: Input should be a valid integer."
    )


def test_all_problems_are_told_at_once_and_each_once() -> None:
    bad = a_config({"mode": "rw"})
    claim = with_configs(a_claim(WANTED), bad, bad, a_config({"gid": -1}), written=[bad])

    found = allocated_claim(claim, WANTED, {NODE})

    assert isinstance(found, Failure)
    assert found.sentence.count("must be a mode") == 1
    assert found.sentence.count("must be a number") == 1


def test_claim_gives_no_permission_that_its_class_keeps() -> None:
    of_class = a_config({"permissions": "r"}, source="FromClass", requests=["req"])

    assert configs(of_class, a_config({"permissions": "r"})).problems == []
    (problem,) = configs(of_class, a_config({"permissions": "rw"})).problems
    assert str(problem) == (
        "spec.devices.config: permissions rw: The DeviceClass of request req allows r only."
    )


def test_config_is_part_of_what_was_allocated() -> None:
    claim = with_configs(a_claim(WANTED, a_result(request="req/first")), a_config(env(A="1")))

    found = allocated_claim(claim, WANTED, {NODE})

    assert not isinstance(found, Failure)
    assert [(d.request, d.config.env) for d in found.devices] == [("req", (("A", "1"),))]
