"""Messages of Akri's discovery contract, parsed and made.

    RegisterDiscoveryHandlerRequest ──registration_of──► Registration | a sentence
    DiscoverResponse ──devices_of──► devices, and sentences about what was left out
    devices ──response_of──► DiscoverResponse

An external handler is third-party code. Parts of its answers that no container could get are left
out and reported; the rest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from urllib.parse import urlsplit

from driver.devices import Device, DeviceSpec, Mount
from driver.discovery.contract import Properties
from driver.discovery.details import shown
from driver.discovery_api.v0 import discovery_pb2 as v0
from driver.handlers.registrations import Endpoint, Registration

LONGEST_NAME = 253
MOST_PROBLEMS = 3
"""Problems of one answer that users read at most."""

LONGEST_PROBLEM = 1024
LONGEST_SOCKET_PATH = 107
"""Bytes of the path of a UNIX socket."""

LONGEST_PROPERTY = 32 * 1024
"""Bytes of a name or a value. No process can start with a variable of 128 KiB."""

LARGEST_PROPERTIES = 128 * 1024
"""Bytes of all properties of a device. They are part of its Instance and of the environment of
containers; etcd stores no object of more than 1.5 MiB."""

_TLS = "https://"
_UNSAFE = frozenset("%?#")
"""Characters that a path may not have, because it becomes part of a URI."""


def registration_of(request: v0.RegisterDiscoveryHandlerRequest) -> Registration | str:
    """The registration in a request, or a sentence: why it is invalid."""
    if not request.name or len(request.name) > LONGEST_NAME or not request.name.isprintable():
        return f"name: {shown(request.name)} is no name of 1 to {LONGEST_NAME} characters."
    network = request.endpoint_type == v0.RegisterDiscoveryHandlerRequest.NETWORK
    if not network and request.endpoint_type != v0.RegisterDiscoveryHandlerRequest.UDS:
        return f"endpoint_type: {request.endpoint_type} is neither UDS (0) nor NETWORK (1)."
    try:
        address = _host_and_port(request.endpoint) if network else _path(request.endpoint)
    except ValueError as error:
        return f"endpoint: {shown(request.endpoint)} {error}."
    tls = network and request.endpoint.startswith(_TLS)
    return Registration(Endpoint(request.name, address), network, request.shared, tls)


def _path(endpoint: str) -> str:
    path = endpoint.removeprefix("unix://")
    if not path.startswith("/") or not path.isprintable() or _UNSAFE & set(path):
        raise ValueError("is no absolute path of plain characters")
    if len(path.encode()) > LONGEST_SOCKET_PATH:
        raise ValueError(f"is a path of more than {LONGEST_SOCKET_PATH} bytes")
    return path


def _host_and_port(endpoint: str) -> str:
    url = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
    if url.scheme not in ("http", "https"):
        raise ValueError("is neither http://<address>:<port> nor https://<address>:<port>")
    if not url.hostname or not url.port or not url.hostname.isprintable():
        raise ValueError("is not http://<address>:<port>")
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    return f"{host}:{url.port}"


def target_of(registration: Registration) -> str:
    """The gRPC target of a handler."""
    address = registration.endpoint.address
    return f"dns:///{address}" if registration.network else f"unix:{address}"


def request_of(details: str, properties: Properties) -> v0.DiscoverRequest:
    """The request for a handler."""
    data = {name: v0.ByteData(vec=value) for name, value in properties.items()}
    return v0.DiscoverRequest(discovery_details=details, discovery_properties=data)


def request_without(
    secrets: frozenset[str], details: str, properties: Properties
) -> tuple[v0.DiscoverRequest, tuple[str, ...]]:
    """The request without the secret properties, and a sentence about them."""
    withheld = sorted(secrets & properties.keys())
    sent = {name: value for name, value in properties.items() if name not in withheld}
    names = ", ".join(map(shown, withheld[:MOST_PROBLEMS]))
    sentence = f"Properties from Secrets are not sent over the network without TLS: {names}."
    return request_of(details, sent), (sentence,) if withheld else ()


def few_problems(problems: Sequence[str]) -> str:
    """The first sentences, and how many more there are."""
    more = len(problems) - MOST_PROBLEMS
    return " ".join([*problems[:MOST_PROBLEMS], *([f"And {more} more."] if more > 0 else [])])


def properties_of(request: v0.DiscoverRequest) -> Properties:
    """The properties in a request."""
    return {
        name: data.vec if data.HasField("vec") else None
        for name, data in request.discovery_properties.items()
    }


def response_of(devices: Iterable[Device], problem: str | None = None) -> v0.DiscoverResponse:
    """The answer with these devices.

    Bytes that are not UTF-8 are lone surrogates in a device, and no message can carry these. A
    property with one is left out, and so is a device with one in a path. In an id they are escaped,
    because an id only has to be unique.
    """
    sendable = (device for device in devices if all(map(_is_text, _paths(device))))
    return v0.DiscoverResponse(devices=map(_message, sendable), problem=problem or "")


def _paths(device: Device) -> Iterator[str]:
    for mount in device.mounts:
        yield from (mount.container_path, mount.host_path)
    for spec in device.device_specs:
        yield from (spec.container_path, spec.host_path)


def _message(device: Device) -> v0.Device:
    return v0.Device(
        id=device.id.encode(errors="backslashreplace").decode(),
        properties={k: v for k, v in device.properties.items() if _is_text(k) and _is_text(v)},
        mounts=[v0.Mount(**asdict(mount)) for mount in device.mounts],
        device_specs=[v0.DeviceSpec(**asdict(spec)) for spec in device.device_specs],
    )


def devices_of(response: v0.DiscoverResponse) -> tuple[tuple[Device, ...], tuple[str, ...]]:
    """The devices of a response, sorted by id, and sentences about what was left out."""
    devices: dict[str, Device] = {}
    problems: list[str] = []
    for message in response.devices:
        if not message.id:
            problems.append("A device without an id is left out.")
        elif message.id in devices:
            problems.append(f"Device {shown(message.id)} comes twice; the first one counts.")
        else:
            devices[message.id] = _device(message, problems)
    return tuple(devices[id_] for id_ in sorted(devices)), tuple(problems)


def problem_of(response: v0.DiscoverResponse) -> tuple[str, ...]:
    """The problem that a handler reports, with printable characters only; () for none."""
    text = response.problem[:LONGEST_PROBLEM]
    return ("".join(one if one.isprintable() else "?" for one in text),) if text else ()


def _device(message: v0.Device, problems: list[str]) -> Device:
    return Device(
        id=message.id,
        properties=dict(_properties(message, problems)),
        mounts=tuple(
            Mount(_place(m.container_path), m.host_path, m.read_only) for m in message.mounts
        ),
        device_specs=tuple(
            DeviceSpec(_place(s.container_path), s.host_path, s.permissions)
            for s in message.device_specs
        ),
    )


def _place(path: str) -> str:
    """A path in a container without the slash at its end, so that paths can be compared."""
    return path.removesuffix("/") or path


def _properties(message: v0.Device, problems: list[str]) -> Iterator[tuple[str, str]]:
    """The properties that fit into an Instance; not all of them can be environment variables."""
    room = LARGEST_PROPERTIES
    for name, value in sorted(message.properties.items()):
        size = max(len(name.encode()), len(value.encode()))
        if "\0" in name or "\0" in value:
            problem = "holds a NUL, which no environment variable can"
        elif size > LONGEST_PROPERTY:
            problem = f"has more than {LONGEST_PROPERTY} bytes"
        elif (room := room - len(name.encode()) - len(value.encode())) < 0:
            problem = f"exceeds the {LARGEST_PROPERTIES} bytes that properties of a device may have"
        else:
            yield name, value
            continue
        problems.append(f"Property {shown(name)} of device {shown(message.id)} {problem}.")


def _is_text(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
