"""The extender's wire: every byte of the answers, and a sentence for every malformed call."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugin.extender.messages import (
    BindArguments,
    FilterArguments,
    NotAnswered,
    Passed,
    PreemptArguments,
    decode_bind,
    decode_filter,
    decode_preempt,
    encode_error,
    encode_filter,
    encode_preempt,
    has_node_left,
)
from scheduler_plugin.judging.verdicts import Refused
from scheduler_plugin.objects.names import Reason

REFUSED = Refused(Reason.OVER_LIMIT, 'Queue "vision" would pass its limit of 8.')

FILTER = (
    b'{"Pod":{"metadata":{"name":"a","uid":"1"}},"Nodes":null,"NodeNames":["node-1", "node-2"]}'
)
PREEMPT_META = (
    b'{"Pod":{},"NodeNameToVictims":null,"NodeNameToMetaVictims":'
    b'{"node-1":{"Pods":[{"UID":"u1"}], "NumPDBViolations":1}}}'
)
BIND = b'{"PodName":"a","PodNamespace":"default","PodUID":"1","Node":"node-1"}'


def filter_call(body: bytes = FILTER) -> FilterArguments:
    call = decode_filter(body)
    assert isinstance(call, FilterArguments), call
    return call


def preempt_call(body: bytes) -> PreemptArguments:
    call = decode_preempt(body)
    assert isinstance(call, PreemptArguments), call
    return call


def why(call: object) -> str:
    assert isinstance(call, NotAnswered), call
    return call.why


def test_filter_reads_the_pod() -> None:
    assert filter_call().pod == {"metadata": {"name": "a", "uid": "1"}}


def test_filter_that_passes_sends_the_names_back_as_they_came() -> None:
    assert encode_filter(filter_call(), Passed()) == (
        b'{"NodeNames":["node-1", "node-2"],"Error":""}'
    )


def test_filter_that_passes_no_names_sends_none_back() -> None:
    call = filter_call(b'{"Pod":{},"NodeNames":[]}')

    assert encode_filter(call, Passed()) == b'{"NodeNames":[],"Error":""}'


def test_filter_that_keeps_a_pod_off_a_node_says_why_of_that_one() -> None:
    passed = Passed({"node-2": "A device is held.", "elsewhere": "It is not asked about."})

    assert encode_filter(filter_call(), passed) == (
        b'{"NodeNames":["node-1"],"FailedAndUnresolvableNodes":{"node-2":"A device is held"},'
        b'"Error":""}'
    )
    assert has_node_left(filter_call(), passed)


def test_a_pod_that_is_kept_off_every_node_is_left_none() -> None:
    assert not has_node_left(filter_call(), Passed({"node-1": "Held.", "node-2": "Held."}))
    assert has_node_left(filter_call(), Passed())


def test_filter_that_refuses_says_the_same_of_every_node() -> None:
    sentence = rb'"OverLimit: Queue \"vision\" would pass its limit of 8"'

    assert encode_filter(filter_call(), REFUSED) == (
        b'{"NodeNames":[],"FailedAndUnresolvableNodes":'
        b'{"node-1":%b,"node-2":%b},"Error":""}' % (sentence, sentence)
    )


def test_filter_refuses_five_thousand_nodes() -> None:
    names = [f"node-{number}" for number in range(5000)]
    call = filter_call(json.dumps({"Pod": {}, "NodeNames": names}).encode())

    answer = json.loads(encode_filter(call, REFUSED))

    sentence = f"{REFUSED.reason}: {REFUSED.sentence}".removesuffix(".")
    assert answer["FailedAndUnresolvableNodes"] == dict.fromkeys(names, sentence)


def test_filter_that_is_not_answered_says_why() -> None:
    assert encode_filter(filter_call(), NotAnswered('no "é"')) == (
        '{"Error":"no \\"é\\""}'.encode()
    )


def test_refusal_of_names_that_are_none_is_an_error() -> None:
    call = filter_call(b'{"Pod":{},"NodeNames":["node-1",7]}')

    assert encode_filter(call, REFUSED) == (b'{"Error":"NodeNames[1]: expected `str`, got `int`."}')


def test_fields_that_later_versions_add_are_passed_over() -> None:
    assert filter_call(b'{"Pod":{},"NodeNames":[],"Later":{"a":[1]}}').pod == {}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "body: input data was truncated."),
        (FILTER[:-9], "body: input data was truncated."),
        (b"[]", "body: expected `object`, got `array`."),
        (b"null", "body: expected `object`, got `null`."),
        (b'{"Pod":{}}}', "body: JSON is malformed: trailing characters (byte 11)."),
        (b"{}", "Pod: must be set."),
        (b'{"pod":{},"nodenames":[]}', "Pod: must be set."),
        (b'{"Pod":null}', "Pod: expected `object`, got `null`."),
        (b'{"Pod":5}', "Pod: expected `object`, got `int`."),
        (b'{"Pod":{"a":1e999}}', "Pod[...]: number out of range."),
        (b'{"Pod":{"a":"\xff"}}', "body: is not UTF-8: invalid start byte."),
        (b'{"Pod":' + b'{"a":' * 100_000, "body: is nested too deeply."),
        (b'{"Pod":{},"NodeNames":' + b"[" * 100_000, "body: is nested too deeply."),
        (b'{"Pod":{}}', "NodeNames: must be set."),
        (b'{"Pod":{},"NodeNames":null}', "NodeNames: must be set."),
        (b'{"Pod":{},"NodeNames":"node-1"}', "NodeNames: must be a list of names."),
        (
            b'{"Pod":{},"Nodes":{"items":[]},"NodeNames":null}',
            "NodeNames: must be set in place of Nodes: set nodeCacheCapable: true for this"
            " extender in the KubeSchedulerConfiguration.",
        ),
    ],
)
def test_malformed_filter_is_told_its_field(body: bytes, sentence: str) -> None:
    assert why(decode_filter(body)) == sentence


def test_preempt_that_passes_sends_the_victims_back_as_they_came() -> None:
    assert encode_preempt(preempt_call(PREEMPT_META), Passed()) == (
        b'{"NodeNameToMetaVictims":{"node-1":{"Pods":[{"UID":"u1"}], "NumPDBViolations":1}}}'
    )


def test_preempt_that_refuses_lets_nobody_be_evicted() -> None:
    assert encode_preempt(preempt_call(PREEMPT_META), REFUSED) == b'{"NodeNameToMetaVictims":{}}'


def test_preempt_that_is_not_answered_lets_nobody_be_evicted() -> None:
    assert encode_preempt(preempt_call(PREEMPT_META), NotAnswered("away")) == (
        b'{"NodeNameToMetaVictims":{},"Error":"away"}'
    )


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b'{"NodeNameToMetaVictims":{}}', "Pod: must be set."),
        (
            b'{"Pod":{},"NodeNameToVictims":{}}',
            "NodeNameToMetaVictims: must be set: set nodeCacheCapable: true for this extender in"
            " the KubeSchedulerConfiguration.",
        ),
        (
            b'{"Pod":{},"NodeNameToMetaVictims":[]}',
            "NodeNameToMetaVictims: must be an object by node name.",
        ),
    ],
)
def test_malformed_preempt_is_told_its_field(body: bytes, sentence: str) -> None:
    assert why(decode_preempt(body)) == sentence


def test_bind_reads_pod_and_node() -> None:
    assert decode_bind(BIND) == BindArguments("a", "default", "1", "node-1")


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("PodName", "", "PodName: must not be empty."),
        ("PodNamespace", None, "PodNamespace: expected `str`, got `null`."),
        ("PodUID", 7, "PodUID: expected `str`, got `int`."),
        ("Node", {}, "Node: expected `str`, got `object`."),
        ("Node", "", "Node: must not be empty."),
    ],
)
def test_malformed_bind_is_told_its_field(field: str, value: object, sentence: str) -> None:
    assert why(decode_bind(json.dumps({**json.loads(BIND), field: value}).encode())) == sentence


@pytest.mark.parametrize("field", ["PodName", "PodNamespace", "PodUID", "Node"])
def test_bind_without_a_field_is_told_which(field: str) -> None:
    body = {key: value for key, value in json.loads(BIND).items() if key != field}

    assert why(decode_bind(json.dumps(body).encode())) == f"{field}: must be set."


def test_bind_that_succeeded_has_an_empty_error() -> None:
    assert encode_error("") == b'{"Error":""}'


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
KEYS = ["Pod", "Nodes", "NodeNames", "NodeNameToVictims", "NodeNameToMetaVictims", "PodName"]


@given(st.binary() | st.dictionaries(st.sampled_from(KEYS), ANY_JSON).map(json.dumps))
def test_nothing_that_is_sent_raises(body: bytes | str) -> None:
    sent = body if isinstance(body, bytes) else body.encode()
    for call in (decode_filter(sent), decode_preempt(sent), decode_bind(sent)):
        assert_answered(call)


def assert_answered(call: object) -> None:
    """Whatever the verdict is, an answer can be read."""
    for answer in (Passed(), REFUSED, NotAnswered("away")):
        if isinstance(call, FilterArguments):
            assert "Error" in json.loads(encode_filter(call, answer))
        if isinstance(call, PreemptArguments):
            found = json.loads(encode_preempt(call, answer))
            assert isinstance(found["NodeNameToMetaVictims"], dict)
