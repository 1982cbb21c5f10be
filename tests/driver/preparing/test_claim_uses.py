"""What counts as used by the kubelet, by its own account."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection
from typing import Any

import pytest

from driver.preparing.claim_uses import Name, State, is_used, parse_state
from tests.driver.claim_builders import a_reference

CLAIM = a_reference(1)
NAME = (CLAIM.namespace, CLAIM.name)

WRITTEN = (
    rb'{"Data":"{\"kind\":\"DRACheckpoint\",\"apiVersion\":\"checkpoint.dra.kubelet.k8s.io/v1\",'
    rb"\"ClaimInfoStateList\":[{\"ClaimUID\":\"067798be-454e-4be4-9047-1aa06aea63f7\","
    rb"\"ClaimName\":\"example\",\"Namespace\":\"default\",\"PodUIDs\":{"
    rb"\"139cdb46-f989-4f17-9561-ca10cfb509a6\":{}},\"DriverState\":{\"test-driver.cdi.k8s.io\":{"
    rb"\"Devices\":[{\"PoolName\":\"worker-1\",\"DeviceName\":\"dev-1\",\"ShareID\":null,"
    rb"\"RequestNames\":[\"test request\"],\"CDIDeviceIDs\":[\"example.com/example=cdi-example\"]}]"
    rb'}}}]}","Checksum":2570581864}'
)
"""From `checkpoint_test.go` of the kubelet 1.36.3."""


def state_text(**data: Any) -> bytes:
    text = json.dumps({"kind": "DRACheckpoint", **data})
    return json.dumps({"Data": text, "Checksum": zlib.crc32(text.encode())}).encode()


def test_state_of_a_real_kubelet_is_read() -> None:
    assert parse_state(WRITTEN) == {"067798be-454e-4be4-9047-1aa06aea63f7": ("default", "example")}


def test_state_without_claims_is_empty() -> None:
    assert parse_state(state_text(ClaimInfoStateList=None)) == {}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        WRITTEN.replace(b"2570581864", b"1"),
        state_text(),
        state_text(kind="Other", ClaimInfoStateList=[]),
        state_text(ClaimInfoStateList=[{"ClaimUID": 1, "ClaimName": "a", "Namespace": "b"}]),
        state_text(ClaimInfoStateList={"a": "b"}),
    ],
)
def test_what_is_no_state_is_none(text: bytes) -> None:
    assert parse_state(text) is None


@pytest.mark.parametrize(
    ("state", "listed", "used"),
    [
        ({}, (), False),
        ({CLAIM.uid: NAME}, (), True),
        ({CLAIM.uid: NAME}, None, True),
        ({}, {NAME}, True),
        (None, {NAME}, True),
        ({"another-uid": NAME}, {NAME}, False),
        (None, (), None),
        ({}, None, None),
    ],
)
def test_a_claim_is_unused_only_where_both_are_known_and_neither_names_it(
    state: State | None, listed: Collection[Name] | None, used: bool | None
) -> None:
    assert is_used(CLAIM, state, listed) is used
