"""Messages that nobody should send: fields that are missing, absurd or unknown, and raw bytes."""

from __future__ import annotations

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from hypothesis import strategies as st

TEXTS = st.one_of(
    st.sampled_from(["", "/", "..", "a/../../b", "\0", "\n", "x" * 5_000, "é" * 300, "{}", "-1"]),
    st.text(max_size=40),
)


def payloads(message: Descriptor) -> st.SearchStrategy[bytes]:
    """What goes over the wire in place of such a message."""
    whole = messages(message).map(lambda m: m.SerializeToString())
    return st.one_of(
        whole,
        st.tuples(whole, UNKNOWN).map(b"".join),
        st.tuples(whole, st.floats(0, 1)).map(lambda cut: cut[0][: int(len(cut[0]) * cut[1])]),
        st.binary(max_size=400),
    )


UNKNOWN = st.binary(max_size=30).map(lambda text: b"\xfa\x3f" + bytes((len(text),)) + text)
"""Field 1023, which no message has."""


def messages(message: Descriptor) -> st.SearchStrategy[Message]:
    """Such messages; each field may be missing."""
    return st.fixed_dictionaries(
        {}, optional={field.name: _field(field) for field in message.fields}
    ).map(lambda fields: message_factory.GetMessageClass(message)(**fields))


def _field(field: FieldDescriptor) -> st.SearchStrategy[object]:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        key, value = (inner.fields_by_name[name] for name in ("key", "value"))
        return st.dictionaries(_value(key), _value(value), max_size=4)
    one = _value(field)
    return st.lists(one, max_size=6) if field.is_repeated else one


def _value(field: FieldDescriptor) -> st.SearchStrategy[object]:
    if field.message_type is not None:
        return messages(field.message_type)
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            return st.binary(max_size=40)
        case FieldDescriptor.CPPTYPE_STRING:
            return TEXTS
        case FieldDescriptor.CPPTYPE_BOOL:
            return st.booleans()
        case FieldDescriptor.CPPTYPE_ENUM | FieldDescriptor.CPPTYPE_INT32:
            return st.integers(-(2**31), 2**31 - 1)
        case FieldDescriptor.CPPTYPE_INT64:
            return st.integers(-(2**63), 2**63 - 1)
        case _:
            raise NotImplementedError(field.full_name)
