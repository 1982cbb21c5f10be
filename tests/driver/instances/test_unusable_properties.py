"""Properties that no container can be told, in the status of their Configuration."""

from __future__ import annotations

from driver.instances.instances import Instance
from driver.instances.inventory import Inventory
from driver.instances.unusable_properties import unusable_sentences
from tests.driver.claim_builders import an_instance


def an_inventory(*instances: Instance) -> Inventory:
    return Inventory(configurations={}, instances=instances, unheard=frozenset())


def test_a_nul_in_a_property_is_told_and_a_name_of_an_attribute_is_not() -> None:
    attribute = "resource.kubernetes.io/pciBusID"
    odd = an_instance(properties={"A": "b\0c", "B\0": "", "C": "\udcff", "D": "ok", attribute: "x"})
    fine = an_instance(properties={"D": "line\nbreak"})

    told = unusable_sentences(an_inventory(odd, fine))[odd.configuration]

    why = "holds a NUL or bytes that are no text, so no container gets it."
    assert told == (
        f'Property "A" of Instance {odd.name} {why}',
        f'Property "C" of Instance {odd.name} {why}',
        f"Property 'B\\x00' of Instance {odd.name} {why}",
    )


def test_of_many_some_are_told() -> None:
    many = [an_instance(properties={f"A{n}": "\0"}) for n in range(9)]

    (told,) = unusable_sentences(an_inventory(*many)).values()

    assert len(told) == 4
    assert told[-1] == "So it is with 6 more."
