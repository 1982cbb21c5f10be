"""Bytes into lines, however they are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.calls import frames
from kube.calls.errors import UnavailableError
from kube.calls.frames import Lines

TEXTS = st.lists(st.binary(min_size=1).filter(lambda b: b"\n" not in b and bool(b.strip())))


@given(texts=TEXTS, cuts=st.lists(st.integers(0, 200)))
def test_lines_do_not_depend_on_how_the_bytes_are_cut(texts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(text + b"\n" for text in texts)
    edges = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    splitter = Lines()

    found = [line for start, end in pairwise(edges) for line in splitter.feed(data[start:end])]

    assert found == texts


def test_line_without_its_newline_is_not_there_yet() -> None:
    splitter = Lines()

    assert splitter.feed(b'{"type":') == []
    assert splitter.feed(b'"ADDED"}') == []
    assert splitter.feed(b"\n") == [b'{"type":"ADDED"}']


def test_blank_lines_are_passed_over() -> None:
    assert Lines().feed(b"\n \r\na\n\n") == [b"a"]


def test_line_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "LONGEST_LINE_BYTES", 10)
    splitter = Lines()
    splitter.feed(b"12345")

    with pytest.raises(UnavailableError):
        splitter.feed(b"678901")
