"""Limits of what is read from an untrusted OPC UA server, which asyncua's client lacks.

asyncua takes its limits from the server. It collects a chunk of any announced size, and reads
backwards in a chunk that is shorter than its header. Its codecs loop without end on a text of
negative length, and make endless lists of an ExtensionObject of a few bytes. So this protocol
passes on whole chunks only, up to a limit of bytes, and refuses negative lengths. It does not
decode ExtensionObjects: answers to FindServers need none.
"""

from __future__ import annotations

from asyncua import ua
from asyncua.client.ua_client import UASocketProtocol
from asyncua.common.utils import Buffer, NotEnoughData

_NONSENSE = "its answer is invalid"
_KINDS = (b"ACK", b"ERR", b"OPN", b"MSG")
_BROKEN_OFF = b"MSGA"
_START = 8
"""Bytes that hold the kind and the size of a chunk."""

_LEAST = 12
"""Bytes of a chunk's header, with the channel."""

ua.extension_objects_by_typeid.clear()


class BoundedProtocol(UASocketProtocol):  # type: ignore[misc]
    """A connection of asyncua's client.

    Args:
        longest: Bytes that it reads at most.
        seconds: Timeout of each answer.

    Attributes:
        refusal: Why it stopped reading from the server, as a part of a sentence; "" if it did not.
    """

    def __init__(self, longest: int, seconds: float) -> None:
        super().__init__(seconds)
        self._longest = self._budget = longest
        self._received = bytearray()
        self.refusal = ""

    def data_received(self, data: bytes) -> None:
        """Pass on what came, chunk by chunk, up to the limit."""
        self._received += data
        self._budget -= len(data)
        while not self.refusal:
            size = int.from_bytes(self._received[4:_START], "little")
            if refusal := self._refusal_of(bytes(self._received[:_START]), size):
                self._refuse(refusal)
            elif len(self._received) < max(size, _START):
                return
            else:
                chunk = bytes(self._received[:size])
                del self._received[:size]
                super().data_received(chunk)

    def _refusal_of(self, start: bytes, size: int) -> str:
        if not any(kind.startswith(start[:3]) for kind in _KINDS):
            return "it does not speak OPC UA"
        if start[:4] == _BROKEN_OFF:
            return "it aborted its answer"
        if self._budget < 0 or (len(start) == _START and size > self._longest):
            return f"its answer is longer than {self._longest // 1024} KiB"
        return _NONSENSE if len(start) == _START and size < _LEAST else ""

    def disconnect_socket(self) -> None:
        """End the connection: asyncua calls this for an answer that it cannot read."""
        self._refuse(_NONSENSE)

    def end(self) -> None:
        """End a connection without an error."""
        if self.transport is not None:
            self.transport.abort()

    def _refuse(self, why: str) -> None:
        self.refusal = self.refusal or why
        self.end()


def _read_forward(buffer: Buffer, size: int) -> bytes:
    if size < 0:
        raise NotEnoughData(f"{size} bytes")
    return bytes(_read(buffer, size))


_read = Buffer.read
Buffer.read = _read_forward
