"""Handlers by name."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

from driver.discovery.handlers import Handlers, HandlerSettings, check_details, parse_details
from driver.discovery.udev.details import UdevDetails

RULES = """udevRules: ['KERNEL=="loop7"']"""


def test_details_are_parsed_by_the_handler_of_the_name() -> None:
    assert isinstance(parse_details("udev", RULES), UdevDetails)
    assert check_details("udev", RULES) == ()


def test_problems_of_details_are_handed_on() -> None:
    [problem] = check_details("udev", "udevRules: ['KERNEL']")

    assert problem.path == "spec.discoveryHandler.discoveryDetails.udevRules[0]"


def test_the_details_of_anothers_handler_are_its_own_business() -> None:
    assert check_details("uDev", "anything: [") == ()


def test_only_the_handlers_that_run_here_are_found() -> None:
    handlers = Handlers(HandlerSettings(), ["udev"])

    assert "udev" in handlers
    assert "debugEcho" not in handlers
    assert "debugEcho" in Handlers(HandlerSettings())


def test_there_is_one_handler_of_each_name() -> None:
    handlers = Handlers(HandlerSettings(rescan_interval=timedelta(seconds=5)))

    assert handlers.named("udev") is handlers.named("udev")
    assert handlers.named("udev").name == "udev"
    assert handlers.named("udev").is_shared(parse_details("udev", RULES)) is False
    assert handlers.named("udev").problem is None


def test_parsing_does_not_import_what_only_discovery_needs() -> None:
    program = f"""
import sys
from driver.discovery.handlers import check_details
assert check_details("udev", {RULES!r}) == ()
assert check_details("onvif", "") == ()
assert check_details("opcua", "opcuaDiscoveryMethod: {{standard: {{}}}}") == ()
heavy = ("pyudev", "asyncio", "asyncua", "aiohttp", "zeep", "lxml")
print(*[name for name in heavy if name in sys.modules])
"""

    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout

    assert output.split() == []


def test_a_node_that_looks_by_udev_alone_has_no_library_of_the_networks() -> None:
    """They take more memory than the rest of its driver."""
    program = """
import sys
import driver.running.node.node_main, driver.discovery.udev.handler
heavy = ("asyncua", "cryptography", "lxml", "onvif", "zeep")
print(*[name for name in heavy if name in sys.modules])
"""
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout

    assert output.split() == []
