"""Which variables devices and claims must not bring to containers."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.devices import device_hash
from driver.discovery.debug_echo.handler import DESCRIPTION
from driver.environment_rules import (
    BUILT_IN,
    DENIED,
    DENIED_IN_ANY_CASE,
    VARIABLE,
    EnvironmentRules,
    built_in_refusal,
)
from driver.instances.unusable_properties import container_properties
from driver.preparing.files.cdi import variables
from tests.driver.claim_builders import an_instance

PATTERNS = [p for each in (DENIED, DENIED_IN_ANY_CASE) for ps in each.values() for p in ps]


@pytest.mark.parametrize(
    "name",
    [
        *("LD_PRELOAD", "LD_LIBRARY_PATH", "GCONV_PATH", "GLIBC_TUNABLES", "MALLOC_CONF"),
        *("PYTHONPATH", "PYTHONSTARTUP", "PERL5OPT", "PERLLIB", "RUBYOPT", "NODE_OPTIONS"),
        *("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "npm_config_node_options"),
        *("BASH_ENV", "ENV", "IFS", "SHELLOPTS", "PS4", "GIT_SSH_COMMAND"),
        *("HTTP_PROXY", "https_proxy", "All_Proxy", "NO_PROXY", "ftp_proxy", "PATH", "HOME"),
        *("KUBERNETES_SERVICE_HOST", "KUBERNETES_PORT", "REDIS_SERVICE_HOST"),
        *("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "CUDA_VISIBLE_DEVICES"),
        *("AMD_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"),
        *("HABANA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
        *("NODE_EXTRA_CA_CERTS", "MOORAGE_INSTANCE", "MOORAGE_CLAIM", "LD_PRELOAD_8120FE"),
    ],
)
def test_what_changes_what_a_program_loads_trusts_or_asks_is_denied(name: str) -> None:
    assert built_in_refusal(name)


@pytest.mark.parametrize(
    "name",
    [
        *("UDEV_DEVNODE", "UDEV_DEVPATH", "ONVIF_DEVICE_SERVICE_URL", "OPCUA_DISCOVERY_URL"),
        *(DESCRIPTION, "AKRI_HTTP_DEVICE_ENDPOINT", "ID_PATH"),
        *("RESOLUTION_WIDTH", "URL", "PLACE", "USER", "HOSTNAME", "path", "node", "OLD_PATH"),
        *("NODE_NAME", "PROXY", "SERVICE_HOST", "LDAP", "PATHS"),
    ],
)
def test_what_devices_say_of_themselves_is_not(name: str) -> None:
    assert built_in_refusal(name) == ""


def test_a_refusal_says_which_pattern_and_why() -> None:
    assert built_in_refusal("MOORAGE_A") == (
        "variables MOORAGE_* are denied: they are Moorage's own"
    )
    assert built_in_refusal("http_proxy") == (
        "variables HTTP_PROXY are denied: they say which proxy is asked"
    )


def denied_names() -> st.SearchStrategy[str]:
    """Names of each pattern."""
    middle = st.text("ABC_9", max_size=4)
    return st.tuples(st.sampled_from(PATTERNS), middle).map(lambda p: p[0].replace("*", p[1]))


@given(denied_names(), st.sampled_from([6, 8, 12, 16]))
def test_neither_a_denied_name_nor_one_with_a_hash_reaches_a_container(
    name: str, digits: int
) -> None:
    instance = an_instance(properties={name: "1", "FLOOR": "2"})
    ending = device_hash(name, None, digits)

    told = variables(container_properties(instance), ending)

    assert sorted(told) == ["FLOOR", f"FLOOR_{ending.upper()}"]


@given(st.text("AB_LDNVIpx*/.", max_size=8))
def test_one_expression_for_all_says_what_each_pattern_says(name: str) -> None:
    listed = [p for patterns in DENIED.values() for p in patterns if fnmatchcase(name, p)]
    upper = name.upper()
    listed += [p for ps in DENIED_IN_ANY_CASE.values() for p in ps if fnmatchcase(upper, p)]

    assert bool(built_in_refusal(name)) is bool(listed)
    assert bool(BUILT_IN.refusal(name)) is bool(listed and VARIABLE.fullmatch(name))


RULES = EnvironmentRules(
    denied=("ACME_*", "CAMERA_KEY"),
    allowed=frozenset({"HTTPS_PROXY", "ACME_LENS"}),
    network_prefixes=("ONVIF_", "ACME_"),
)


def test_an_administrator_denies_more_and_allows_names() -> None:
    assert RULES.refusal("ACME_A") == "variables ACME_* are denied by --denied-environment"
    assert "CAMERA_KEY" in RULES.refusal("CAMERA_KEY")
    assert RULES.refusal("LD_PRELOAD")
    assert not RULES.refusal("HTTPS_PROXY")
    assert not RULES.refusal("ACME_LENS")
    assert RULES.refusal("https_proxy"), "an exception is one name"


def test_a_handler_without_privileges_gives_names_with_a_prefix_alone() -> None:
    assert not RULES.unprivileged_refusal("ONVIF_DEVICE_UUID")
    assert not RULES.unprivileged_refusal("ACME_LENS")
    assert RULES.unprivileged_refusal("ACME_A"), "a prefix allows nothing that is denied"
    assert RULES.unprivileged_refusal("HTTPS_PROXY"), "nor does an exception for other handlers"
    assert RULES.unprivileged_refusal("FLOOR") == (
        "its handler runs without privileges (--network-handler-prefixes: ONVIF_, ACME_)"
    )
    assert EnvironmentRules(network_prefixes=()).unprivileged_refusal("ONVIF_DEVICE_UUID")


def test_what_can_be_no_variable_is_none_of_its_business() -> None:
    """Such as what tells Moorage of a device's health."""
    for name in ("moorage.dev/health", "resource.kubernetes.io/pciBusID", "A B", "a/HTTP_PROXY"):
        assert BUILT_IN.refusal(name) == BUILT_IN.unprivileged_refusal(name) == ""


def test_what_is_denied_is_left_out_and_the_rest_is_the_same() -> None:
    fine = {"A": "1"}

    assert BUILT_IN.passed({**fine, "PATH": "/x"}) == fine
    assert BUILT_IN.passed(fine) is fine
