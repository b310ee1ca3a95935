"""Checks the address of a Ray cluster first, because `ray.init` itself tries for a quarter of an hour."""

from __future__ import annotations

import socket
import time


def reach(address: str, secs: float) -> None:
    """Returns when a server listens at `host:port`, and at once for "auto", "local", "ray://..." and "".

    Args:
        address: the address of the cluster.
        secs: the longest time to try, in seconds.

    Raises:
        ConnectionError: no server listens there.

    Example:
        >>> reach("auto", secs=1.0)
    """
    host, colon, port = address.rpartition(":")
    if not colon or "/" in address or not port.isdigit():
        return
    deadline = time.monotonic() + secs
    while True:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise ConnectionError(f"no cluster listens at {address}: {error}") from error
        time.sleep(0.5)
