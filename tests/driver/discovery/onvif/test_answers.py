"""What cameras say of themselves, in all the ways in which they say it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from driver.discovery.onvif.cameras import connected
from driver.discovery.onvif.devices import Facts
from driver.discovery.onvif.http_carrier import Target, tls
from tests.fakes.cameras import ENVELOPE, FakeCamera, answer, http

CLOCK = """<d:GetSystemDateAndTimeResponse><d:SystemDateAndTime><t:LocalDateTime/><t:UTCDateTime>
<t:Time><t:Hour>4</t:Hour><t:Minute>5</t:Minute><t:Second>6</t:Second></t:Time>
<t:Date><t:Year>{year}</t:Year><t:Month>2</t:Month><t:Day>3</t:Day></t:Date></t:UTCDateTime>
</d:SystemDateAndTime></d:GetSystemDateAndTimeResponse>"""
INTERFACES = """<d:GetNetworkInterfacesResponse><d:NetworkInterfaces token="a">
<t:Enabled>true</t:Enabled><t:Info><t:HwAddress>{mac}</t:HwAddress></t:Info><t:IPv4>
<t:Enabled>true</t:Enabled><t:Config><t:{how}><t:Address>{ip}</t:Address></t:{how}></t:Config>
</t:IPv4></d:NetworkInterfaces><d:NetworkInterfaces token="b"><t:Info>
<t:HwAddress>00:00:00:00:00:02</t:HwAddress></t:Info></d:NetworkInterfaces>
</d:GetNetworkInterfacesResponse>"""
INFORMATION = """<d:GetDeviceInformationResponse><d:Manufacturer> A
 B </d:Manufacturer><d:Model/><d:FirmwareVersion>\x85x\u202e</d:FirmwareVersion><d:SerialNumber>
{serial}</d:SerialNumber><d:Odd>1</d:Odd></d:GetDeviceInformationResponse>"""


async def clock_of(content: bytes) -> datetime | None:
    async with FakeCamera(content).serving() as address, connected(tls(None), 9) as cameras:
        return await cameras.clock(Target(address))


async def facts_of(content: bytes) -> Facts:
    async with FakeCamera(content).serving() as address, connected(tls(None), 9) as cameras:
        told, _ = await cameras.facts(Target(address), None)
        return told


async def test_the_clock_is_read() -> None:
    shown = await clock_of(answer(CLOCK.format(year=2026)))

    assert shown == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.mark.parametrize("year", ["", "x", "99999999999", "0"])
async def test_a_clock_that_is_wrong_tells_nothing(year: str) -> None:
    assert await clock_of(answer(CLOCK.format(year=year))) is None


@pytest.mark.parametrize(
    "body",
    [
        "<d:GetSystemDateAndTimeResponse/>",
        "<d:Other/>",
        "<s:Fault><s:Code><s:Value>s:Sender</s:Value></s:Code></s:Fault>",
    ],
)
async def test_a_camera_that_answers_is_there_whatever_it_says(body: str) -> None:
    assert await clock_of(answer(body)) is None
    assert await facts_of(answer(body)) == Facts()


@pytest.mark.parametrize("how", ["FromDHCP", "LinkLocal", "Manual"])
@pytest.mark.parametrize(
    ("ip", "mac", "told"),
    [
        ("10.0.0.2", "00:0A", ("10.0.0.2", "00:0A")),
        ("", "00:0A", None),
        ("10.0.0.2", "", ("10.0.0.2", "00:00:00:00:00:02")),
    ],
)
async def test_the_first_addresses_are_taken(
    how: str, ip: str, mac: str, told: tuple[str, str] | None
) -> None:
    told_of = INTERFACES.format(how=how, ip=ip, mac=mac)

    assert (await facts_of(answer(told_of))).network == told


async def test_information_is_shortened_and_printable() -> None:
    told = (await facts_of(answer(INFORMATION.format(serial="7" * 999)))).information

    assert told == {"Manufacturer": "A B", "SerialNumber": "7" * 256}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "windows-1252"])
async def test_any_encoding_is_read(encoding: str) -> None:
    text = ENVELOPE.format(INFORMATION.format(serial="Büro"))
    content = text.replace("UTF-8", encoding).replace("\x85x\u202e", "").encode(encoding)

    assert (await facts_of(http(content))).information["SerialNumber"] == "Büro"


async def test_a_wrong_encoding_costs_no_letter() -> None:
    text = ENVELOPE.format(INFORMATION.format(serial="Büro")).replace("\u202e", "")

    assert (await facts_of(http(text.encode("latin-1")))).information["SerialNumber"] == "Büro"
