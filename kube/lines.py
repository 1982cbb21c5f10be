"""Bytes into lines of any length.

aiohttp's own `readline` refuses lines beyond its buffer, and one watch event may be larger:
etcd stores up to 1.5 MiB, which grows when it is written as JSON.
"""

from kube.errors import UnavailableError

# No object that a server stores comes near; beyond it the stream is not a watch.
LONGEST_LINE_BYTES = 64 * 2**20


class Lines:
    """A splitter that keeps the unfinished end; a line counts only when its newline is there."""

    __slots__ = ("_pieces", "_size")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes, without their newlines and without blanks."""
        *complete, rest = chunk.split(b"\n")
        if complete:
            complete[0] = b"".join([*self._pieces, complete[0]])
            self._pieces, self._size = [], 0
        self._keep(rest)
        return [line for line in complete if line.strip()]

    def _keep(self, rest: bytes) -> None:
        self._pieces.append(rest)
        self._size += len(rest)
        if self._size > LONGEST_LINE_BYTES:
            raise UnavailableError("the watch sent a line without end")
