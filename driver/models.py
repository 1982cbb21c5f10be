"""The driver's kinds as models: the source of their definitions, and how the shared driver reads.

Configurations and Instances are Akri's, field for field. To a Configuration come `uniqueDevices`,
`offlineGracePeriod`, `offlineTaintEffect`, `attributes` and a status; nothing is stricter than
Akri's definition and nothing is defaulted, so that objects written for Akri apply unchanged. What a
value means, and whether it makes sense, is said by the driver in the condition `Accepted`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field, JsonValue

from driver.api import Problem
from driver.device_configs import (
    HIGHEST_ID,
    MODE,
    NAME,
    PERMISSIONS,
    Check,
    folder_problem,
    id_problem,
    mode_problem,
    name_problem,
    permissions_problem,
    value_problem,
)
from driver.discovery_models import DiscoveryHandler
from kube.models import (
    Conditions,
    Counter,
    Metadata,
    Model,
    Time,
    extensions,
    extra,
    flaw,
    flaws,
    rule,
)

_KEPT = extensions(preserve_unknown_fields=True) | {"nullable": True}
Kept = Annotated[dict[str, Any] | None, Field(json_schema_extra=_KEPT)]
"""A part of Akri's objects that is not looked into."""

NO_DURATION = "is no duration; write it like 90s, 5m or 1h30m"
"""What is said of a text that is none, after the text."""


def duration(units: str, *rules: tuple[str, str]) -> tuple[Any, ...]:
    """What is said of a field that holds a duration: the API server refuses others in words.

    A `pattern` would be shown to users as it is. The rules stand in the definition, so they hold
    while no webhook answers.

    Args:
        units: Those that may be written, such as `h|m|s`.
        rules: Conditions in CEL that a duration must meet besides, each with its message.
    """
    pattern = rf"^(0|([0-9]{{1,9}}([.][0-9]{{1,9}})?({units}))+)$"
    is_one = f"self.matches('{pattern}')"
    whole = re.compile(pattern.removesuffix("$"))

    def met(text: str) -> str:
        if not whole.fullmatch(text):
            raise flaw(f'"{text}" {NO_DURATION}.')
        return text

    validations = [
        rule(is_one, f"it {NO_DURATION}")
        | {"messageExpression": f"""'"' + self + '" {NO_DURATION}'"""},
        *(rule(f"!{is_one} || {expression}", message) for expression, message in rules),
    ]
    return Field(max_length=64), extra(validations=validations), AfterValidator(met)


GracePeriod = Annotated[str, *duration("h|m|s|ms|us")]
ShortText = Annotated[str, Field(max_length=64)]


class BrokerSpec(Model):
    """The workload that Akri runs for each Instance. Kept, and not acted on by Moorage."""

    model_config = ConfigDict(json_schema_extra=_KEPT)
    broker_pod_spec: Kept = None
    """A PodSpec."""
    broker_job_spec: Kept = None
    """A JobSpec."""


class Attribute(Model):
    """One value; exactly one of the fields is set."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("string", "int_", "bool_", "version")
    string: ShortText | None = None
    """Text of at most 64 bytes."""
    int_: Annotated[int, Field(json_schema_extra={"format": "int64"})] | None = None
    """A whole number."""
    bool_: bool | None = None
    """Whether something holds."""
    version: ShortText | None = None
    """A semantic version, such as 1.2.3."""


class ConfigurationSpec(Model):
    """What to discover and how to offer it."""

    discovery_handler: DiscoveryHandler | None = None
    capacity: int | None = None
    """Slots of each device, that is, how many uses it has at one time. Absent means 1. Less than 1
    is stored and reported as not accepted."""
    unique_devices: bool | None = None
    """Whether whoever asks for several devices of this Configuration gets different ones, never two
    slots of one device. Absent means what the driver is set to, which is true unless an
    administrator changed it."""
    offline_grace_period: GracePeriod | None = None
    """How long the Instance of a device that went away is kept for its return, such as 30s or 5m.
    Absent means five minutes for devices that several nodes see, and no time for those of one
    node."""
    offline_taint_effect: Literal["NoSchedule", "NoExecute"] | None = None
    """What the taint of a device that went away does on a cluster with DRA. NoSchedule: no new
    claim gets it; NoExecute: besides, pods that use it are evicted. Absent means NoSchedule."""
    broker_spec: BrokerSpec | None = None
    instance_service_spec: Kept = None
    """The ServiceSpec of the Service that Akri makes for each Instance. Kept, and not acted on by
    Moorage."""
    configuration_service_spec: Kept = None
    """The ServiceSpec of the Service that Akri makes for all Instances together. Kept, and not
    acted on by Moorage."""
    broker_properties: dict[str, str] | None = None
    """Properties that every device of this Configuration has, for the containers that use it. They
    win over what the handler reports under the same name."""
    attributes: Annotated[dict[str, Attribute] | None, Field(max_length=16)] = None
    """Attributes that every device of this Configuration has in ResourceSlices, so that claims can
    select it by them: which floor, which line, whose. A name is an identifier such as floor, or one
    behind a domain, example.com/owner; without a domain it is one of moorage.dev. They win over
    what the handler reports."""


class NodeReport(Model):
    """What one node says."""

    name: Annotated[str, Field(max_length=253)]
    """The node's name."""
    handler: Literal["Waiting", "Active", "Offline"]
    """The state of the handler. Waiting: none is registered, or it has not been reached yet;
    Offline: it cannot be reached, and after five minutes its devices count as gone; Active: it is
    reached, and the message tells what is wrong."""
    since: Time | None = None
    """When it went Offline."""
    registered: bool | None = None
    """False while no discovery handler of the name in spec is registered there."""
    properties_read: bool | None = None
    """False while a Secret or ConfigMap that discoveryProperties need is not read; the handler is
    not asked with new ones."""
    devices_distinct: bool | None = None
    """False while a device is another Configuration's, too, and one of them offers it to one user
    at a time."""
    devices_complete: bool | None = None
    """False while its handler reports a problem, or devices are left out or not as their handler
    says; the message tells which, and what mends it."""
    message: Annotated[str, Field(max_length=1024)] | None = None
    """Why, as a sentence for people."""


class ConfigurationStatus(Model):
    """What became of the Configuration. Written by the driver."""

    observed_generation: Counter | None = None
    """The generation of the spec that the conditions are about."""
    nodes: Annotated[
        list[NodeReport] | None,
        Field(max_length=2000),
        extra(list_type="map", list_map_keys=["name"]),
    ] = None
    """The nodes whose discovery handler is not Active, or has a problem. Each node writes its own
    entry."""
    conditions: Conditions = None
    """The state in detail. Accepted says whether devices are discovered for it, and if not, why;
    NameTaken says what else bears its name, an older Configuration or a DeviceClass; DevicePlugin
    says why its devices are not offered through the device plugin; UniqueDevices says that one
    request may be given one device several times, as the API server knows no slots;
    HandlerRegistered says on which nodes no handler of its name is registered; PropertiesRead says
    which nodes cannot read a Secret or ConfigMap that discoveryProperties need; DevicesDistinct
    says which devices another Configuration offers, too, so that a claim has them through one of
    the two at a time; DevicesComplete says what handlers report to be wrong, and which devices are
    left out; FieldsIgnored names fields that are kept and not acted on."""


class ConfigurationModel(Model):
    """A kind of device to discover, and how those that are found may be used.

    For each device an Instance is made.
    """

    metadata: Metadata
    spec: ConfigurationSpec | None = None
    status: ConfigurationStatus | None = None


class InstanceSpec(Model):
    """The device, who sees it and who uses it."""

    configuration_name: str
    """The Configuration that the device was discovered for."""
    cdi_name: str
    """The device's fully qualified CDI name, akri.sh/<configuration>=<hash of the device>."""
    capacity: Annotated[int, Field(ge=0)]
    """Slots, that is, how many uses the device has at one time."""
    broker_properties: dict[str, str] = Field({})
    """What containers that use the device learn of it."""
    shared: bool = False
    """Whether several nodes may see the device."""
    nodes: Annotated[list[str], extra(list_type="set")] = Field([])
    """The nodes that see the device now. Each node adds and removes itself."""
    device_usage: Annotated[dict[str, str], extra(map_type="granular")] = Field({})
    """Who uses which slot. The key is <instance>-<number of the slot>. The value is the node, if a
    pod asked for this device; C:<virtual device>:<node>, if it asked for any device of the
    Configuration. An absent key or an empty value is a free slot."""


class InstanceModel(Model):
    """One device that was discovered for a Configuration. Made by the driver."""

    metadata: Metadata
    spec: InstanceSpec


def _as(check: Check, **schema: JsonValue) -> Any:
    """A value that meets a check of `device_configs`, whose sentence says what is wrong."""

    def met(value: Any) -> Any:
        if why := check(value):
            raise flaw(why)
        return value

    return AfterValidator(met), Field(json_schema_extra={**schema})


_VariableName = Annotated[str, *_as(name_problem, pattern=NAME.pattern)]
_VariableValue = Annotated[str, *_as(value_problem)]
_Permissions = Annotated[str, *_as(permissions_problem, pattern=PERMISSIONS.pattern)]
_Mode = Annotated[str, *_as(mode_problem, pattern=MODE.pattern)]
_Id = Annotated[int, *_as(id_problem, minimum=0, maximum=HIGHEST_ID)]
_Folder = Annotated[str, *_as(folder_problem)]


class DeviceConfigModel(Model):
    """What a claim or a DeviceClass asks of a device that it is given, as its opaque parameters.

    Nodes read it without this model, see `device_configs`: they must not pay for pydantic, and
    nobody has checked it before. A test holds both to the same answers.
    """

    model_config = ConfigDict(extra="forbid")
    api_version: Literal["moorage.dev/v1alpha1"]
    kind: Literal["DeviceConfig"]
    env: dict[_VariableName, _VariableValue] | None = None
    """Environment that containers get besides the device's own."""
    permissions: _Permissions | None = None
    """What containers may do with device nodes: read, write, mknod; never more than the handler
    says. Absent means what the handler says."""
    mode: _Mode | None = None
    """Of device nodes in the container, in octal, such as 0660. Absent means what the container
    runtime gives."""
    uid: _Id | None = None
    """Who owns device nodes in the container. Absent means whom the container runs as."""
    gid: _Id | None = None
    """Their group. Absent means as which the container runs."""
    certificates: _Folder | None = None
    """Where containers find the folder with the device's certificates. Absent means nowhere."""


def device_config_problems(parameters: object) -> tuple[Problem, ...]:
    """What of opaque parameters for our driver is wrong; paths begin within them."""
    return tuple(Problem(path, sentence) for path, sentence in flaws(DeviceConfigModel, parameters))


def configuration_problems(body: object) -> tuple[Problem, ...]:
    """What of a Configuration is not as its definition says."""
    return tuple(Problem(path, sentence) for path, sentence in flaws(ConfigurationModel, body))
