"""The driver's kinds as models: the source of their definitions, and of the shared driver's checks.

Configurations and Instances have the same fields as Akri's. A Configuration also has
`uniqueDevices`, `offlineGracePeriod`, `offlineTaintEffect`, `attributes` and a status. No field is
stricter than in Akri's definition, and none has a default, so objects written for Akri apply
unchanged. The driver validates the values, and reports problems in the condition `Accepted`.
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
"""A part of Akri's objects that Moorage does not interpret."""

NO_DURATION = "is no duration; write it like 90s, 5m or 1h30m"
"""End of the sentence about an invalid duration, after the text."""


def duration(units: str, *rules: tuple[str, str]) -> tuple[Any, ...]:
    """The validation of a field with a duration, with a message that users understand.

    The API server would show a `pattern` to users as it is. The rules are in the definition, so
    they hold also while the webhook is down.

    Args:
        units: The allowed units, such as `h|m|s`.
        rules: Further conditions in CEL, each with its message.
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
    """The workload for each Instance: one of the fields."""

    model_config = ConfigDict(json_schema_extra=_KEPT)
    broker_pod_spec: Kept = None
    """A PodSpec: a broker Pod runs on each node that sees the device, at most as many as it has
    slots. {{PLACEHOLDER}} in limits or requests of a container is a number of its slots."""
    broker_job_spec: Kept = None
    """A JobSpec: a Job runs once for each device, with the same placeholder."""


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
    """Slots of each device, that is, how many concurrent uses it has. Absent means 1. Less than 1
    is stored and reported as not accepted."""
    unique_devices: bool | None = None
    """Whether a request for several devices of this Configuration gets different devices, never two
    slots of one device. Absent means the setting of the driver, which is true unless an
    administrator changed it."""
    offline_grace_period: GracePeriod | None = None
    """How long the Instance of an absent device is kept for its return, such as 30s or 5m. Absent
    means five minutes for devices that several nodes see, and no time for devices of one node."""
    offline_taint_effect: Literal["NoSchedule", "NoExecute"] | None = None
    """Effect of the taint of an absent device on a cluster with DRA. NoSchedule: no new claim gets
    the device. NoExecute: in addition, pods that use it are evicted. Absent means NoSchedule."""
    broker_spec: BrokerSpec | None = None
    instance_service_spec: Kept = None
    """The ServiceSpec of a Service for the broker Pods of each Instance. Its selector is
    completed."""
    configuration_service_spec: Kept = None
    """The ServiceSpec of a Service for all broker Pods together. Its selector is completed."""
    max_brokers: Annotated[int, Field(ge=0)] | None = None
    """The most broker Pods or Jobs. If more would run, no further one is made. Absent means
    1000."""
    broker_properties: dict[str, str] | None = None
    """Properties of every device of this Configuration, for the containers that use it. They
    override properties of the same name that the handler reports."""
    attributes: Annotated[dict[str, Attribute] | None, Field(max_length=16)] = None
    """Attributes of every device of this Configuration in ResourceSlices, by which claims can
    select it, such as its floor or its owner. A name is an identifier such as floor, or a domain
    and an identifier such as example.com/owner; without a domain it belongs to moorage.dev. They
    override attributes of the same name that the handler reports."""


class NodeReport(Model):
    """The report of one node."""

    name: Annotated[str, Field(max_length=253)]
    """The node's name."""
    handler: Literal["Waiting", "Active", "Offline"]
    """The state of the handler. Waiting: no handler is registered, or it has not answered yet.
    Offline: it cannot be reached; after five minutes its devices count as gone. Active: it answers,
    and the message says what is wrong."""
    since: Time | None = None
    """Since when the handler is Offline."""
    registered: bool | None = None
    """False while no discovery handler of the name in spec is registered on the node."""
    properties_read: bool | None = None
    """False while a Secret or ConfigMap that discoveryProperties need cannot be read. The handler
    keeps the values that it has."""
    devices_distinct: bool | None = None
    """False while another Configuration has a device, too, and one of them offers it to a single
    user."""
    devices_complete: bool | None = None
    """False while the handler reports a problem, or while devices are left out or changed. The
    message names them and says what mends it."""
    message: Annotated[str, Field(max_length=1024)] | None = None
    """The reason, as a sentence for people."""


class ConfigurationStatus(Model):
    """The state of the Configuration. Written by the driver."""

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
    """The state in detail. Accepted says whether devices are discovered for it, and if not, why.
    NameTaken says that an older Configuration or a DeviceClass has its name. DevicePlugin says why
    its devices are not offered through the device plugin. UniqueDevices says that one request may
    get one device several times, since the API server does not support slots. HandlerRegistered
    says on which nodes no handler of its name is registered. PropertiesRead says which nodes cannot
    read a Secret or ConfigMap that discoveryProperties need. DevicesDistinct says which devices
    another Configuration offers, too, so that claims have them through one of the two only.
    DevicesComplete says which problems handlers report, and which devices are left out.
    BrokersReady says
    whether all brokers run, and if not, why."""


class ConfigurationModel(Model):
    """A kind of device to discover, and how the discovered devices may be used.

    The driver makes an Instance for each device.
    """

    metadata: Metadata
    spec: ConfigurationSpec | None = None
    status: ConfigurationStatus | None = None


class InstanceSpec(Model):
    """The device, the nodes that see it, and its users."""

    configuration_name: str
    """The Configuration that the device was discovered for."""
    cdi_name: str
    """The device's fully qualified CDI name, akri.sh/<configuration>=<hash of the device>."""
    capacity: Annotated[int, Field(ge=0)]
    """Slots, that is, how many concurrent uses the device has."""
    broker_properties: dict[str, str] = Field({})
    """Properties of the device for the containers that use it."""
    shared: bool = False
    """Whether several nodes may see the device."""
    nodes: Annotated[list[str], extra(list_type="set")] = Field([])
    """The nodes that see the device now. Each node adds and removes itself."""
    device_usage: Annotated[dict[str, str], extra(map_type="granular")] = Field({})
    """The holder of each slot. The key is <instance>-<number of the slot>. The value is the node if
    a pod requested this device, and C:<virtual device>:<node> if it requested any device of the
    Configuration. An absent key or an empty value means a free slot."""


class InstanceModel(Model):
    """One device that was discovered for a Configuration. Made by the driver."""

    metadata: Metadata
    spec: InstanceSpec


def _as(check: Check, **schema: JsonValue) -> Any:
    """A value that passes a check of `device_configs`; the check returns the sentence otherwise."""

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
    """Settings of a claim or a DeviceClass for an allocated device, in its opaque parameters.

    Nodes parse it without this model, see `device_configs`, since pydantic takes too much memory.
    A test makes sure that both give the same answers.
    """

    model_config = ConfigDict(extra="forbid")
    api_version: Literal["moorage.dev/v1alpha1"]
    kind: Literal["DeviceConfig"]
    env: dict[_VariableName, _VariableValue] | None = None
    """Environment of containers beside the device's own."""
    permissions: _Permissions | None = None
    """What containers may do with device nodes: r (read), w (write), m (mknod), never more than the
    handler allows. Absent means what the handler allows."""
    mode: _Mode | None = None
    """Mode of device nodes in the container, in octal, such as 0660. Absent means the mode that the
    container runtime gives."""
    uid: _Id | None = None
    """Owner of device nodes in the container. Absent means the user of the container."""
    gid: _Id | None = None
    """Group of device nodes in the container. Absent means the group of the container."""
    certificates: _Folder | None = None
    """Path in containers of the folder with the device's certificates. Absent means that containers
    get no certificates."""


def device_config_problems(parameters: object) -> tuple[Problem, ...]:
    """The problems of opaque parameters for our driver; paths are relative to them."""
    return tuple(Problem(path, sentence) for path, sentence in flaws(DeviceConfigModel, parameters))


def configuration_problems(body: object) -> tuple[Problem, ...]:
    """The problems of a Configuration by its definition."""
    return tuple(Problem(path, sentence) for path, sentence in flaws(ConfigurationModel, body))
