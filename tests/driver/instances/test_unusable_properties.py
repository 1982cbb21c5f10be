"""Properties that no container can be told, in the status of their Configuration."""

from __future__ import annotations

from driver.device_health import DEGRADED, HEALTH
from driver.environment_rules import EnvironmentRules
from driver.instances.instances import Instance, instance_of
from driver.instances.inventory import Heard, Host, Inventory, inventory_of
from driver.instances.unusable_properties import (
    container_properties,
    denied_properties,
    unusable_sentences,
)
from driver.publishing.desired.attributes import attributes
from tests.driver.builders import NODE, a_configuration, a_device
from tests.driver.claim_builders import an_instance
from tests.driver.instances.test_inventory import a_verdict


def an_inventory(*instances: Instance) -> Inventory:
    return Inventory(configurations={}, instances=instances, unheard=frozenset())


def test_a_nul_in_a_property_is_told_and_a_name_of_an_attribute_is_not() -> None:
    attribute = "resource.kubernetes.io/pciBusID"
    odd = an_instance(properties={"A": "b\0c", "B\0": "", "C": "\udcff", "D": "ok", attribute: "x"})
    fine = an_instance(properties={"D": "line\nbreak"})

    told = unusable_sentences(an_inventory(odd, fine))[odd.configuration]

    why = "has a NUL byte or bytes that are not UTF-8, so no container gets it."
    assert told == (
        f'Property "A" of Instance {odd.name} {why}',
        f'Property "C" of Instance {odd.name} {why}',
        f"Property 'B\\x00' of Instance {odd.name} {why}",
    )


def test_of_many_some_are_told() -> None:
    many = [an_instance(properties={f"A{n}": "\0"}) for n in range(9)]

    (told,) = unusable_sentences(an_inventory(*many)).values()

    assert len(told) == 4
    assert told[-1] == "The same is true of 6 more."


DENIED = {"LD_PRELOAD": "/x.so", "Https_Proxy": "http://10.0.0.1"}


def test_what_is_denied_is_told_and_the_rest_reaches_containers() -> None:
    odd = an_instance(properties={**DENIED, "FLOOR": "2", HEALTH: DEGRADED})

    told = unusable_sentences(an_inventory(odd))[odd.configuration]

    assert told == (
        f'No container gets property "Https_Proxy" of Instance {odd.name}: variables HTTPS_PROXY'
        " are denied: they say which proxy is asked.",
        f'No container gets property "LD_PRELOAD" of Instance {odd.name}: variables LD_* are'
        " denied: they say what the loader and the C library load.",
    )
    assert container_properties(odd) == {"FLOOR": "2", HEALTH: DEGRADED}
    assert odd.degraded
    assert attributes(odd)["LD_PRELOAD"] == {"string": "/x.so"}


def test_of_a_handler_without_privileges_a_prefix_is_asked_and_of_its_configuration_not() -> None:
    reported = {"ONVIF_DEVICE_UUID": "a", "FLOOR": "1", "LENS": "tele", HEALTH: DEGRADED}
    device = a_device(properties=reported, device_specs=(), unprivileged=True)
    said = {"FLOOR": "2", "LD_PRELOAD": "/x.so"}
    instance = instance_of(device, a_configuration(broker_properties=said), None)

    assert container_properties(instance) == {
        "ONVIF_DEVICE_UUID": "a",
        "FLOOR": "2",
        HEALTH: DEGRADED,
    }
    assert denied_properties(instance) == {
        "LD_PRELOAD": "variables LD_* are denied: they say what the loader and the C library load",
        "LENS": "its handler runs without privileges (--network-handler-prefixes: ONVIF_, OPCUA_)",
    }


def test_the_settings_of_a_node_count_for_all_of_its_devices() -> None:
    verdict = a_verdict()
    device = a_device(properties={**DENIED, "ACME_KEY": "1"})
    rules = EnvironmentRules(denied=("ACME_*",), allowed=frozenset({"LD_PRELOAD"}))
    heard = {verdict.name: Heard(verdict.uid, (device,))}

    inventory = inventory_of([verdict], heard, NODE, host=Host(rules=rules))
    again = inventory_of([verdict], heard, NODE, host=Host(rules=rules))

    assert list(denied_properties(inventory.instances[0])) == ["ACME_KEY", "Https_Proxy"]
    assert inventory.rules == rules
    assert again.instances[0] is inventory.instances[0], "what follows from it is kept"
