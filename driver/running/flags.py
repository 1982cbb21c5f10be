"""Flags of `moorage-driver` as annotated types: the parser, the help and the default of each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from driver.discovery.handlers import HANDLER_NAMES
from driver.environment import NETWORK_PREFIXES
from driver.handlers.limits import DEVICES, MOST_DEVICES, NETWORK_HANDLERS, NODE_DEVICES
from driver.handlers.sdk_requests import AGENT_FOLDER, AGENT_SOCKET
from driver.running.arguments import (
    handler_names,
    host_paths,
    lasting,
    path_or_none,
    positive,
    variable_names,
    variable_patterns,
    variable_prefixes,
)
from kube.api import parsed

EmbeddedHandlers = Annotated[
    frozenset[str],
    parsed(
        handler_names,
        metavar="NAMES",
        help_="Discovery handlers that run in this process, with commas between them; the"
        " others are waited for.",
        shown=",".join(HANDLER_NAMES),
    ),
]
RegistrationSocket = Annotated[
    Path | None,
    parsed(
        path_or_none,
        metavar="FILE",
        help_="Where discovery handlers of other processes register; empty: nowhere.",
        shown=str(AGENT_FOLDER / AGENT_SOCKET),
    ),
]
NetworkFolder = Annotated[
    Path | None,
    parsed(
        path_or_none,
        metavar="DIR",
        help_=f"Where {' and '.join(NETWORK_HANDLERS)} may register that run without"
        " privileges, and listen (default: none).",
    ),
]
DevicePaths = Annotated[
    Sequence[str],
    parsed(
        host_paths,
        metavar="PATHS",
        help_="Of the host, with commas between them: what registered handlers give containers"
        " as device nodes lies there or below; a part may be a pattern.",
        shown=DEVICES,
    ),
]
MountPaths = Annotated[
    Sequence[str],
    parsed(
        host_paths,
        metavar="PATHS",
        help_="The same for files and folders that they mount (default: none).",
    ),
]
ContainerPaths = Annotated[
    Sequence[str],
    parsed(
        host_paths,
        metavar="PATHS",
        help_="Of containers, with commas between them: registered handlers may put device nodes"
        " and mounts there or below, too; a part may be a pattern (default: device nodes below"
        " /dev, and mounts where containers have neither programs, settings nor secrets).",
    ),
]
HostDevFolder = Annotated[
    Path | None,
    parsed(
        path_or_none,
        metavar="DIR",
        help_="Where the driver sees the host's /dev: links in it are followed there, and what"
        " is no device node is not given (default: /dev, where that is the host's).",
    ),
]
NamesAllowed = Annotated[
    frozenset[str] | None,
    parsed(
        handler_names,
        metavar="NAMES",
        help_="Names of Moorage's own that handlers of other processes may register all the"
        " same, with commas between them (default: those that are not in --embedded-handlers).",
    ),
]
NetworkPrefixes = Annotated[
    Sequence[str],
    parsed(
        variable_prefixes,
        metavar="PREFIXES",
        help_="Properties that handlers in --network-handlers-folder report become environment of"
        " containers if their names begin with one of these, with commas between them.",
        shown=",".join(NETWORK_PREFIXES),
    ),
]
DeniedNames = Annotated[
    Sequence[str],
    parsed(
        variable_patterns,
        metavar="PATTERNS",
        help_="Patterns of variables' names, such as ACME_*, with commas between them, that are"
        " denied as environment of containers beside the built-in ones (default: none).",
    ),
]
AllowedNames = Annotated[
    Sequence[str],
    parsed(
        variable_names,
        metavar="NAMES",
        help_="Names of variables, with commas between them, that properties of devices may become"
        " although they are denied (default: none).",
    ),
]
HandlerMostDevices = Annotated[
    int,
    parsed(
        positive,
        metavar="NUMBER",
        help_="That one registered handler may report in all.",
        shown=str(MOST_DEVICES),
    ),
]
NodeMostDevices = Annotated[
    int,
    parsed(
        positive,
        metavar="NUMBER",
        help_="That all registered handlers may report together, a sixth of them those in"
        " --network-handlers-folder. Each takes up to 18 KiB of memory.",
        shown=str(NODE_DEVICES),
    ),
]
GroupByNodes = Annotated[
    bool,
    typer.Option(
        "--group-by-nodes",
        help="Publish a ResourceSlice for each set of nodes that see devices, however many there"
        " are, as versions before this flag do: for a rollback to one.",
    ),
]

DriverNamespace = Annotated[
    str,
    typer.Option(
        envvar=["DRIVER_NAMESPACE", "POD_NAMESPACE"],
        help="Of the drivers on nodes, as the chart's driver.namespace says.",
    ),
]

StaleClaimGrace = Annotated[
    timedelta,
    lasting(
        "How long a prepared claim is kept that the API server does not have, and that neither"
        " the kubelet nor a pod of the node names.",
        "1h",
    ),
]
