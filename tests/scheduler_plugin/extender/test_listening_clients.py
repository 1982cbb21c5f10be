"""Who a client is by its certificate."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_plugin.extender.listening import client_names, why_not_allowed

CERTIFICATE: dict[str, Any] = {
    "subject": ((("organizationName", "a"),), (("commonName", "system:kube-scheduler"),)),
    "subjectAltName": (
        ("DNS", "scheduler.example"),
        ("URI", "spiffe://example/scheduler"),
        ("IP Address", "127.0.0.1"),
        ("email", "a@example"),
        ("DNS", "scheduler.example"),
    ),
}


def test_names_are_the_common_name_and_alternative_names() -> None:
    assert client_names(CERTIFICATE) == (
        "system:kube-scheduler",
        "scheduler.example",
        "spiffe://example/scheduler",
    )


@pytest.mark.parametrize("name", client_names(CERTIFICATE))
def test_one_name_is_enough(name: str) -> None:
    assert why_not_allowed(CERTIFICATE, frozenset({"other", name})) == ""


@pytest.mark.parametrize("name", ["a", "127.0.0.1", "a@example", "System:Kube-Scheduler", "", "*"])
def test_other_parts_of_a_certificate_and_parts_of_names_are_no_names(name: str) -> None:
    assert why_not_allowed(CERTIFICATE, frozenset({name}))


@pytest.mark.parametrize("certificate", [{}, {"subject": (), "subjectAltName": ()}])
def test_a_certificate_without_names_is_not_heard(certificate: dict[str, Any]) -> None:
    assert why_not_allowed(certificate, frozenset({""})) == (
        "Your certificate names no client: --client-names must have one of its names."
    )
