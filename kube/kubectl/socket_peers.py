"""Which process listens on a unix socket."""

from __future__ import annotations

import socket
import sys

# On macOS SOL_LOCAL and LOCAL_PEERPID, which Python does not name.
_LEVEL, _PEER = (socket.SOL_SOCKET, socket.SO_PEERCRED) if sys.platform == "linux" else (0, 2)
_PID_BYTES = 4


def listener_of(connection: socket.socket) -> int:
    """The PID of the process that listens on the peer's side; 0 if it is unknown.

    A process in another PID namespace has no PID here.
    """
    try:
        found = connection.getsockopt(_LEVEL, _PEER, _PID_BYTES)
    except OSError:
        return 0
    return int.from_bytes(found, sys.byteorder)
