"""Flags of `moorage-driver` as annotated types: the parser, the help and the default of each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from driver.discovery.handlers import HANDLER_NAMES
from driver.environment_rules import NETWORK_PREFIXES
from driver.handlers.report_limits import DEVICES, MOST_DEVICES, NETWORK_HANDLERS, NODE_DEVICES
from driver.handlers.sdk_requests import AGENT_FOLDER, AGENT_SOCKET
from driver.running.arguments import (
    handler_names,
    host_paths,
    lasting,
    namespaces,
    path_or_none,
    positive,
    variable_names,
    variable_patterns,
    variable_prefixes,
)
from kube.processes.api import parsed

EmbeddedHandlers = Annotated[
    frozenset[str],
    parsed(
        handler_names,
        metavar="NAMES",
        help_="Discovery handlers that run in this process, separated by commas. Other handlers"
        " must register from processes of their own.",
        shown=",".join(HANDLER_NAMES),
    ),
]
BrokerNamespaces = Annotated[
    frozenset[str],
    parsed(
        namespaces,
        metavar="NAMESPACES",
        help_="Namespaces, separated by commas, whose Configurations may have brokers, Jobs and"
        " Services. * means all namespaces (default: none).",
    ),
]
RegistrationSocket = Annotated[
    Path | None,
    parsed(
        path_or_none,
        metavar="FILE",
        help_="Unix socket at which discovery handlers in other processes register. Empty means"
        " that none can register there.",
        shown=str(AGENT_FOLDER / AGENT_SOCKET),
    ),
]
NetworkFolder = Annotated[
    Path | None,
    parsed(
        path_or_none,
        metavar="DIR",
        help_=f"Folder of sockets at which {' and '.join(NETWORK_HANDLERS)} handlers without"
        " privileges register and listen (default: none; they cannot register).",
    ),
]
DevicePaths = Annotated[
    Sequence[str],
    parsed(
        host_paths,
        metavar="PATHS",
        help_="Paths of the host, separated by commas. Registered handlers may give containers"
        " device nodes at these paths or below them. A part of a path may be a pattern.",
        shown=DEVICES,
    ),
]
MountPaths = Annotated[
    Sequence[str],
    parsed(
        host_paths,
        metavar="PATHS",
        help_="Paths of the host, separated by commas. Registered handlers may mount files and"
        " folders at these paths or below them. A part of a path may be a pattern (default: none).",
    ),
]
ContainerPaths = Annotated[
    Sequence[str],
    parsed(
        host_paths,
        metavar="PATHS",
        help_="Further paths of containers, separated by commas, at which or below which registered"
        " handlers may put device nodes and mounts. A part of a path may be a pattern (default:"
        " none; device nodes below /dev are allowed, and mounts where containers have neither"
        " programs, settings nor secrets).",
    ),
]
HostDevFolder = Annotated[
    Path | None,
    parsed(
        path_or_none,
        metavar="DIR",
        help_="Folder where the driver sees the host's /dev. The driver resolves links in it, and"
        " refuses paths that are no device nodes (default: /dev, if that is the host's).",
    ),
]
NamesAllowed = Annotated[
    frozenset[str] | None,
    parsed(
        handler_names,
        metavar="NAMES",
        help_="Names of Moorage's own handlers, separated by commas, under which handlers in other"
        " processes may register (default: the names that are not in --embedded-handlers).",
    ),
]
NetworkPrefixes = Annotated[
    Sequence[str],
    parsed(
        variable_prefixes,
        metavar="PREFIXES",
        help_="Prefixes of names, separated by commas. Only properties with such a name become"
        " environment of containers if a handler in --network-handlers-folder reports them.",
        shown=",".join(NETWORK_PREFIXES),
    ),
]
DeniedNames = Annotated[
    Sequence[str],
    parsed(
        variable_patterns,
        metavar="PATTERNS",
        help_="Patterns of variable names, such as ACME_*, separated by commas, that are denied as"
        " environment of containers beside the built-in ones (default: none).",
    ),
]
AllowedNames = Annotated[
    Sequence[str],
    parsed(
        variable_names,
        metavar="NAMES",
        help_="Names of variables, separated by commas, that properties of devices may become"
        " although they are denied (default: none).",
    ),
]
HandlerMostDevices = Annotated[
    int,
    parsed(
        positive,
        metavar="NUMBER",
        help_="Most devices that one registered handler may report.",
        shown=str(MOST_DEVICES),
    ),
]
NodeMostDevices = Annotated[
    int,
    parsed(
        positive,
        metavar="NUMBER",
        help_="Most devices that all registered handlers together may report; handlers in"
        " --network-handlers-folder may report a sixth of them. Each device takes up to 18 KiB of"
        " memory.",
        shown=str(NODE_DEVICES),
    ),
]
GroupByNodes = Annotated[
    bool,
    typer.Option(
        "--group-by-nodes",
        help="Publish a ResourceSlice for each set of nodes that see devices, whatever their"
        " number. Older versions do so: set it before a rollback to a version without this flag.",
    ),
]

DriverNamespace = Annotated[
    str,
    typer.Option(
        envvar=["DRIVER_NAMESPACE", "POD_NAMESPACE"],
        help="Namespace of the ServiceAccount of the drivers on nodes (driver.namespace in the"
        " chart's values).",
    ),
]

StaleClaimGrace = Annotated[
    timedelta,
    lasting(
        "How long a prepared claim is kept that the API server does not have, and that neither"
        " the kubelet nor a pod of the node uses.",
        "1h",
    ),
]
