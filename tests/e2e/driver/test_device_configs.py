"""What a claim and its class ask of a device, seen from inside the container."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tests.e2e.driver.stories import Story

LOOK = (
    "env | sort | grep -E '^(FLOOR|LENS)='; stat -c '%a %u %g' $UDEV_DEVNODE;"
    " cat /etc/camera/ca.pem 2> /dev/null; (: 3<> $UDEV_DEVNODE) 2> /dev/null && echo writable;"
    " exec sleep 100000"
)


def asked(**fields: Any) -> dict[str, Any]:
    parameters = {"apiVersion": "moorage.dev/v1alpha1", "kind": "DeviceConfig", **fields}
    return {"opaque": {"driver": "moorage.dev", "parameters": parameters}}


@contextmanager
def a_class(story: Story, *config: dict[str, Any]) -> Iterator[str]:
    """A class of an administrator's, of this story's devices."""
    name = f"{story.name}-asked"
    chosen = f'device.attributes["moorage.dev"].configuration == "{story.name}"'
    selectors = [{"cel": {"expression": f'device.driver == "moorage.dev" && {chosen}'}}]
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors, "config": list(config)},
    }
    story.cluster.apply(body)
    try:
        yield name
    finally:
        story.cluster.kubectl("delete", "deviceclass", name)


def look(story: Story, name: str = "reader", claim: str = "disk") -> list[str]:
    story.pod(name, claim=claim, node="node-a", container={"command": ["sh", "-c", LOOK]})
    story.wait_running(name)
    return story.read(name).splitlines()


def certified(story: Story) -> None:
    folder = story.folder / "certificates"
    folder.mkdir()
    (folder / "ca.pem").write_text("-- a certificate --\n")
    story.plug()
    story.configure(brokerProperties={"moorage.dev/certificates": str(folder)})


def test_a_container_has_its_device_as_the_claim_asks(story: Story) -> None:
    certified(story)
    everything = asked(
        env={"LENS": "wide"}, mode="0641", uid=7, gid=8, permissions="r", certificates="/etc/camera"
    )
    story.claim(config=[everything])

    assert look(story) == ["LENS=wide", "641 7 8", "-- a certificate --"]


def test_without_it_the_device_is_the_containers_to_write(story: Story) -> None:
    story.plug()
    story.configure()
    story.claim()

    assert look(story)[-1] == "writable"


def test_the_claim_wins_over_its_class_field_by_field(story: Story) -> None:
    story.plug()
    story.configure()
    general = asked(env={"LENS": "wide", "FLOOR": "2"}, mode="0600", uid=7, permissions="r")
    with a_class(story, general) as name:
        story.claim(of_class=name, config=[asked(env={"LENS": "tele"}, mode="0644", gid=9)])

        assert look(story) == ["FLOOR=2", "LENS=tele", "644 7 9"]


def test_after_a_restart_and_a_new_plan_it_is_still_as_the_claim_asks(story: Story) -> None:
    disk = story.plug()
    story.configure()
    story.claim(config=[asked(env={"LENS": "wide"}, mode="0641")])
    assert look(story)[:2] == ["LENS=wide", "641 0 0"]
    uid = story.claim_uid()

    story.drivers.nodes["node-a"].stop()
    story.drivers.nodes["node-a"].start()
    story.drivers.nodes["node-a"].wait_ready()
    story.configure(brokerProperties={"UDEV_FLOOR": "2"})

    (file,) = story.cdi_files(uid, "node-a")
    story.until("the claim is planned anew", lambda: "UDEV_FLOOR=2" in file.read_text() or None)
    assert '"fileMode": 417' in file.read_text()
    assert "LENS=wide" in file.read_text()
    assert disk.name in file.read_text()


def test_what_no_webhook_refused_the_node_refuses_and_says_why(story: Story) -> None:
    story.plug()
    story.configure()
    story.claim("wrong", config=[asked(mode="rw", env={"MOORAGE_A": "1"})])
    story.claim("greedy", config=[asked(permissions="rwm", env={"UDEV_DEVNODE": "/dev/null"})])

    for claim, sentence in (
        (
            "wrong",
            "spec.devices.config[0].opaque.parameters.env[MOORAGE_A]: Variables MOORAGE_* are"
            " denied: they are Moorage's own. spec.devices.config[0].opaque.parameters.mode:"
            " It must be a mode in four octal digits, such as 0660.",
        ),
        ("greedy", "cannot have env[UDEV_DEVNODE] of its DeviceConfig"),
    ):
        story.pod(claim, claim=claim, node="node-a")
        story.until(f"an Event says {sentence}", partial(said, story, sentence))
        story.delete("pod", claim)
        story.delete("resourceclaim", claim)


def said(story: Story, sentence: str) -> bool | None:
    events = story.cluster.list("events", namespace=story.namespace)
    return any(sentence in event.get("message", "") for event in events) or None
