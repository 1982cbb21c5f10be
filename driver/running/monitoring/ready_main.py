"""The kubelet's probe: whether the driver of this pod is ready, see `ready_socket`.

    python3.13 -m driver.running.monitoring.ready_main <folder>

It runs every few seconds until the driver is ready, so it imports very little.
"""

from __future__ import annotations

import os
import socket
import sys

SECONDS = 4.0
_LONGEST_BYTES = 4096


def socket_name(pod_uid: str) -> str:
    """Name of the socket in the driver's folder at which the driver of a pod answers."""
    # The same part of the UID as in `KubeletPaths`, which takes too long to import.
    return f"ready-{pod_uid[:8]}.sock" if pod_uid else "ready.sock"


def why_not_ready(path: str) -> str:
    """Why the driver is not ready; "" if it is ready."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.settimeout(SECONDS)
            caller.connect(path)
            return _all_of(caller).decode(errors="replace")
    except OSError as error:
        return f"The driver does not answer at {path}: {error}"


def _all_of(caller: socket.socket) -> bytes:
    text = b""
    while len(text) < _LONGEST_BYTES and (part := caller.recv(_LONGEST_BYTES)):
        text += part
    return text


def main(folder: str) -> int:
    """The exit status of the probe; prints why the driver is not ready."""
    why = why_not_ready(f"{folder}/{socket_name(os.environ.get('POD_UID', ''))}")
    if why:
        sys.stdout.write(f"{why}\n")
    return 1 if why else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
