"""Bounds of what is read from a stranger's OPC UA server: what asyncua's client does not refuse.

Its own limits are those that the server tells; it gathers a chunk of any announced size, and one
shorter than its header takes it back. Its codecs go back over the same bytes for ever on a text of
a length below zero, and make lists without an end of an ExtensionObject of a few bytes. So it gets
chunks that are whole, and only so many bytes of them; such lengths are refused; and
ExtensionObjects, of which answers to FindServers need none, are not looked into.
"""

from __future__ import annotations

from asyncua import ua
from asyncua.client.ua_client import UASocketProtocol
from asyncua.common.utils import Buffer, NotEnoughData

_NONSENSE = "its answer makes no sense"
_KINDS = (b"ACK", b"ERR", b"OPN", b"MSG")
_BROKEN_OFF = b"MSGA"
_START = 8
"""Bytes before which nobody knows how long a chunk is."""

_LEAST = 12
"""Bytes of a chunk's header, with the channel."""

ua.extension_objects_by_typeid.clear()


class BoundedProtocol(UASocketProtocol):  # type: ignore[misc]
    """A connection of asyncua's client.

    Args:
        longest: Bytes that are read from it at most.
        seconds: How long each answer is awaited.

    Attributes:
        refusal: Why what the server sent was not read any further, in words for a sentence; empty
            if it was not that.
    """

    def __init__(self, longest: int, seconds: float) -> None:
        super().__init__(seconds)
        self._longest = self._left = longest
        self._received = bytearray()
        self.refusal = ""

    def data_received(self, data: bytes) -> None:
        """Take what came, chunk by chunk, unless it is too much."""
        self._received += data
        self._left -= len(data)
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
            return "it broke its answer off"
        if self._left < 0 or (len(start) == _START and size > self._longest):
            return f"its answer is longer than {self._longest // 1024} KiB"
        return _NONSENSE if len(start) == _START and size < _LEAST else ""

    def disconnect_socket(self) -> None:
        """End the connection: asyncua does so on what it cannot read."""
        self._refuse(_NONSENSE)

    def end(self) -> None:
        """End the connection; nothing is wrong with it."""
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
