"""What the drivers say on a cluster without DRA."""

from __future__ import annotations

from tests.e2e.legacy.slot_stories import ANY, SlotStory


def test_the_drivers_say_what_is_missing_and_which_path_is_taken(slots: SlotStory) -> None:
    slots.configure("foo0")
    slots.wait_offers({ANY: 1, "foo0": 1})

    for node in slots.drivers.nodes.values():
        assert "the API server serves no ResourceSlices" in node.logs()
        assert "devices are offered path=device-plugin" in node.logs()
    shared = slots.drivers.shared
    # It is elected first; nothing that nodes offer waits for it.
    slots.until("the shared driver says so", lambda: "serves no DeviceClasses" in shared.logs())
