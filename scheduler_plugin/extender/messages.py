"""The messages between kube-scheduler and an extender.

    body ──decode──► FilterArguments | PreemptArguments | BindArguments | NotAnswered
    Passed | Refused | NotAnswered ──encode──► body

The shapes are those of `k8s.io/kube-scheduler/extender/v1`. They have no JSON tags, so the keys are
Go's field names. Go's decoder accepts other spellings, too, but kube-scheduler does not send them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import msgspec

from scheduler_plugin.judging.verdicts import Refused

T = TypeVar("T")

NULL = msgspec.Raw(b"null")


@dataclass(frozen=True, slots=True)
class Passed:
    """The pod passed Filter.

    Attributes:
        kept_off: The nodes that Filter excludes nevertheless, each with the reason and a sentence.
    """

    kept_off: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotAnswered:
    """The call failed, which says nothing about the pod: kube-scheduler tries again later.

    Attributes:
        why: A sentence for people; it begins with the path of a field that is at fault.
    """

    why: str


Answer: TypeAlias = Passed | Refused | NotAnswered


class FilterArguments(
    msgspec.Struct, frozen=True, rename={"pod": "Pod", "nodes": "Nodes", "node_names": "NodeNames"}
):
    """A pod, and the nodes that it fits.

    Attributes:
        node_names: The list as it came; it is not decoded, since most answers send it back.
    """

    pod: dict[str, Any]
    nodes: msgspec.Raw = NULL
    node_names: msgspec.Raw = NULL


class PreemptArguments(
    msgspec.Struct, frozen=True, rename={"pod": "Pod", "victims": "NodeNameToMetaVictims"}
):
    """A pod that no node fits, and the victims that kube-scheduler would evict for it.

    Attributes:
        victims: The object as it came: the victims' UIDs by node.
    """

    pod: dict[str, Any]
    victims: msgspec.Raw = NULL


class BindArguments(
    msgspec.Struct,
    frozen=True,
    rename={"name": "PodName", "namespace": "PodNamespace", "uid": "PodUID", "node": "Node"},
):
    """The pod to bind, and its node."""

    name: str
    namespace: str
    uid: str
    node: str


_CAPABLE = ": set nodeCacheCapable: true for this extender in the KubeSchedulerConfiguration"
_FILTER = msgspec.json.Decoder(FilterArguments)
_PREEMPT = msgspec.json.Decoder(PreemptArguments)
_BIND = msgspec.json.Decoder(BindArguments)
_NAMES = msgspec.json.Decoder(list[str])
_ENCODER = msgspec.json.Encoder()


def decode_filter(body: bytes) -> FilterArguments | NotAnswered:
    """Read a Filter call; the node names are not decoded yet."""
    call = _decoded(_FILTER, body)
    if isinstance(call, NotAnswered) or _opens(call.node_names, b"["):
        return call
    if not _is_null(call.node_names):
        return NotAnswered("NodeNames: must be a list of names.")
    if _is_null(call.nodes):
        return NotAnswered("NodeNames: must be set.")
    return NotAnswered(f"NodeNames: must be set in place of Nodes{_CAPABLE}.")


def decode_preempt(body: bytes) -> PreemptArguments | NotAnswered:
    """Read a Preempt call."""
    call = _decoded(_PREEMPT, body)
    if isinstance(call, NotAnswered) or _opens(call.victims, b"{"):
        return call
    if not _is_null(call.victims):
        return NotAnswered("NodeNameToMetaVictims: must be an object by node name.")
    return NotAnswered(f"NodeNameToMetaVictims: must be set{_CAPABLE}.")


def decode_bind(body: bytes) -> BindArguments | NotAnswered:
    """Read a Bind call."""
    call = _decoded(_BIND, body)
    if isinstance(call, NotAnswered):
        return call
    fields = {
        "PodName": call.name,
        "PodNamespace": call.namespace,
        "PodUID": call.uid,
        "Node": call.node,
    }
    empty = [path for path, value in fields.items() if not value]
    return NotAnswered(f"{empty[0]}: must not be empty.") if empty else call


def has_node_left(call: FilterArguments, passed: Passed) -> bool:
    """Whether a node is left that Filter does not exclude."""
    if not passed.kept_off:
        return True
    names = _decoded(_NAMES, bytes(call.node_names), "NodeNames")
    return not isinstance(names, NotAnswered) and any(n not in passed.kept_off for n in names)


def encode_filter(call: FilterArguments, answer: Answer) -> bytes:
    """Answer a Filter call: the nodes as they came without the excluded ones, or none and why."""
    match answer:
        case Passed(kept_off) if kept_off:
            return _all_but(call, kept_off)
        case Passed():
            return b'{"NodeNames":%b,"Error":""}' % bytes(call.node_names)
        case Refused():
            return _refusal(call, answer)
        case NotAnswered(why):
            return encode_error(why)


def _all_but(call: FilterArguments, kept_off: Mapping[str, str]) -> bytes:
    """Pass a pod to all nodes but the excluded ones, where no eviction would help."""
    names = _decoded(_NAMES, bytes(call.node_names), "NodeNames")
    if isinstance(names, NotAnswered):
        return encode_error(names.why)
    failed = {name: kept_off[name].removesuffix(".") for name in names if name in kept_off}
    passed = [name for name in names if name not in kept_off]
    return _ENCODER.encode({"NodeNames": passed, "FailedAndUnresolvableNodes": failed, "Error": ""})


def _refusal(call: FilterArguments, refused: Refused) -> bytes:
    """Refuse all nodes with one sentence.

    The sentence is encoded once and copied, which halves the cost of an answer with 5,000 names.
    The nodes are unresolvable, since no eviction would change the verdict. kube-scheduler adds a
    full stop.
    """
    names = _decoded(_NAMES, bytes(call.node_names), "NodeNames")
    if isinstance(names, NotAnswered):
        return encode_error(names.why)
    sentence = f"{refused.reason}: {refused.sentence}".removesuffix(".")
    encoded = msgspec.Raw(_ENCODER.encode(sentence))
    failed = dict.fromkeys(names, encoded)
    return _ENCODER.encode({"NodeNames": [], "FailedAndUnresolvableNodes": failed, "Error": ""})


def encode_preempt(call: PreemptArguments, answer: Answer) -> bytes:
    """Answer a Preempt call: the victims as they came, or none."""
    match answer:
        case Passed():
            return b'{"NodeNameToMetaVictims":%b}' % bytes(call.victims)
        case Refused():
            return b'{"NodeNameToMetaVictims":{}}'
        case NotAnswered(why):
            return encode_preempt_error(why)


def encode_preempt_error(why: str) -> bytes:
    """Answer a Preempt call that failed; no pod is evicted for it.

    kube-scheduler's type has no field for an error: it reads the empty map, and people the rest.
    """
    return _ENCODER.encode({"NodeNameToMetaVictims": {}, "Error": why})


def encode_error(why: str) -> bytes:
    """Answer a Filter or Bind call that failed; with "" a Bind that succeeded."""
    return _ENCODER.encode({"Error": why})


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes, root: str = "") -> T | NotAnswered:
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as error:
        return NotAnswered(_sentence(str(error), root))
    except UnicodeDecodeError as error:
        return NotAnswered(f"{root or 'body'}: is not UTF-8: {error.reason}.")
    except RecursionError:
        return NotAnswered(f"{root or 'body'}: is nested too deeply.")


_AT = re.compile(r" - at `(key in )?\$\.?(?P<path>.*)`$")
_REQUIRED = re.compile(r"Object missing required field `(?P<field>[^`]*)`")


def _sentence(message: str, root: str) -> str:
    """The decoder's message behind the path of the field, as in our other sentences."""
    at = _AT.search(message)
    path = root + (at["path"] if at else "")
    message = message[: at.start()] if at else message
    if required := _REQUIRED.fullmatch(message):
        path, message = ".".join(filter(None, (path, required["field"]))), "must be set"
    if message[1:2].islower():  # not "JSON is malformed"
        message = message[0].lower() + message[1:]
    return f"{path or 'body'}: {message}."


def _is_null(raw: msgspec.Raw) -> bool:
    return bytes(raw) == b"null"


def _opens(raw: msgspec.Raw, bracket: bytes) -> bool:
    return bytes(memoryview(raw)[:1]) == bracket
