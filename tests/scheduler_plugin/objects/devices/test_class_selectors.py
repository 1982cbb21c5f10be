"""What selectors demand in plain words: never more than CEL would."""

from __future__ import annotations

import pytest

from scheduler_plugin.objects.devices.class_selectors import (
    demanded_configuration,
    demanded_drivers,
)

CAMERAS = 'device.attributes["moorage.dev"].configuration == "onvif"'


@pytest.mark.parametrize(
    ("expressions", "drivers"),
    [
        ([], ()),
        ([None], ()),
        (["true"], ()),
        (['device.driver == "a"'], ("a",)),
        (["device.driver=='a'"], ("a",)),
        (['  device . driver  ==\n"a"'], ("a",)),
        (['x.y && device.driver == "a"'], ("a",)),
        (['device.driver == "a" && x.y.exists(z, z == 1 && w) && true'], ("a",)),
        (['device.driver == "a"', 'device.driver == "b"'], ("a", "b")),
        (['device.driver == "a" && device.driver == "a"'], ("a",)),
        ([CAMERAS], ("moorage.dev",)),
        (['device.capacity["moorage.dev"].slots.isGreaterThan(quantity("1"))'], ("moorage.dev",)),
        (['device.attributes["moorage.dev"].floor != 3'], ("moorage.dev",)),
        # Of these some device of another driver is selected, or may be.
        (['device.driver == "a" || true'], ()),
        (['true || device.driver == "a"'], ()),
        (['device.driver == "a" ? true : true'], ()),
        (['!(x && device.driver == "a" && y)'], ()),
        (['[x && device.driver == "a" && y].exists(z, true)'], ()),
        (['x == ") && device.driver == \\"a\\" && ("'], ()),
        (['x == "&& device.driver == " && y'], ()),
        (["x == '&& device.driver == \"a\" &&'"], ()),
        (['f(")") && device.driver == "a"'], ("a",)),
        (['f(")" && device.driver == "a" && "(")'], ()),
        (['true // && device.driver == "a"'], ()),
        (['!device.driver == "a"'], ()),
        (['device.driver != "a"'], ()),
        (['device.driver == "a" + "b"'], ()),
        (['device.driver == r"a"'], ()),
        (['device.driver == "a" == true'], ()),
        (['device.attributes["moorage.dev"].size() == 0'], ()),
        (['!device.attributes["moorage.dev"].floor'], ()),
        (['device.attributes["moorage.dev"].?floor.orValue(0) == 0'], ()),
        (['device.attributes["other.dev"].floor == 3'], ()),
    ],
)
def test_driver_is_read_where_each_device_must_be_of_it(
    expressions: list[str | None], drivers: tuple[str, ...]
) -> None:
    assert demanded_drivers(expressions) == drivers


@pytest.mark.parametrize(
    ("expressions", "name"),
    [
        ([CAMERAS], "onvif"),
        ([f'device.driver == "moorage.dev" && {CAMERAS} && x'], "onvif"),
        (['device.driver == "moorage.dev"', CAMERAS], "onvif"),
        ([CAMERAS, CAMERAS.replace("onvif", "udev")], ""),
        ([f"{CAMERAS} || x"], ""),
        ([f"!({CAMERAS})"], ""),
        ([CAMERAS.replace("==", "!=")], ""),
        ([CAMERAS.replace("moorage.dev", "other.dev")], ""),
        (['device.driver == "onvif"'], ""),
    ],
)
def test_configuration_is_read_where_each_device_must_be_of_it(
    expressions: list[str | None], name: str
) -> None:
    assert demanded_configuration(expressions) == name
