"""Contracts of `proto/` that tests speak without stubs: compiled when they are asked for.

Those of older kubelets the driver answers with the messages of newer ones, so no stub of them is
the product's.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import Message

PROTO = Path(__file__).resolve().parent.parent / "proto"

DRA_V1BETA1, HEALTH_V1ALPHA1 = "dra/v1beta1", "dra-health/v1alpha1"
POD_RESOURCES = "podresources/v1"

COMPILED_BY_TESTS = frozenset({DRA_V1BETA1, HEALTH_V1ALPHA1})
"""Folders of contracts that have no stubs."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a service.

    Attributes:
        path: By which gRPC calls it.
        is_stream: Whether it answers with several messages.
    """

    path: str
    request: type[Message]
    response: type[Message]
    is_stream: bool

    def on(self, channel: Any) -> Any:
        """It as what a stub has, of a channel in threads or in an event loop."""
        make = channel.unary_stream if self.is_stream else channel.unary_unary
        return make(
            self.path,
            request_serializer=self.request.SerializeToString,
            response_deserializer=self.response.FromString,
        )


@cache
def contract(folder: str) -> FileDescriptor:
    """The file of a folder of `proto/`, in a pool of its own."""
    with tempfile.TemporaryDirectory() as out:
        file = Path(out, "set")
        words = (f"-I{PROTO / folder}", f"--descriptor_set_out={file}", "api.proto")
        subprocess.run((sys.executable, "-m", "grpc_tools.protoc", *words), check=True)
        (found,) = descriptor_pb2.FileDescriptorSet.FromString(file.read_bytes()).file
    pool = descriptor_pool.DescriptorPool()
    pool.Add(found)
    return pool.FindFileByName(found.name)


@cache
def methods(folder: str) -> Mapping[str, Method]:
    """The methods of a contract, by their names."""
    return {
        method.name: Method(
            f"/{service.full_name}/{method.name}",
            message_factory.GetMessageClass(method.input_type),
            message_factory.GetMessageClass(method.output_type),
            method.server_streaming,
        )
        for service in contract(folder).services_by_name.values()
        for method in service.methods
    }
