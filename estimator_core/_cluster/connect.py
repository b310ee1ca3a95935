"""The processes of a run, connected: the `Coordinator` of `jax.distributed`."""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from estimator_core._cluster.link import Link
from estimator_core._cluster.processes import Processes
from estimator_core._cluster.together import chief_says, describe
from estimator_core.coordinator import ALONE, Alone, Lost

_log = logging.getLogger("estimator_core")
#: Exit status after another process was lost: starting all of them again goes on (EX_TEMPFAIL).
RESUMABLE_EXIT_STATUS = 75
#: A collective that waits for a lost process may never return; then the process is ended from outside of it.
_GRACE_SECS = 20.0


class Connected:
    """Several processes on `jax.distributed`, with a line between them to agree on."""

    def __init__(self, group: Processes, *, timeout: float) -> None:
        self.group = group
        self.count, self.index = group.count, group.index
        address, count, index = group.coordinator, group.count, group.index
        self._noticed = threading.Event()
        self._failed = False
        self._link = Link(address, count, index, on_lost=self._on_lost, timeout=timeout)
        # Before jax's own, which would wait minutes for a process that is gone.
        atexit.register(self._at_exit)

    def agree(self, topic: str, value: str, timeout: float) -> list[str]:
        """What every process gave, in their order.

        Raises:
            ProcessLostError: one of them is gone, or has not come in time.
        """
        return self._link.gather(topic, value, timeout)

    def tell(self, topic: str, value: str | None, timeout: float) -> str:
        """What process 0 gave; the others' values do not matter.

        Raises:
            ProcessLostError: a process is gone, or has not come in time.
        """
        return self._link.gather(topic, value, timeout)[0]

    def barrier(self, topic: str, timeout: float) -> None:
        """Returns when all processes have come.

        Raises:
            ProcessLostError: one of them is gone, or has not come in time.
        """
        self._link.gather(topic, None, timeout)

    def post(self, topic: str, value: str) -> Callable[[], list[str]]:
        """As `agree`, to be waited for later: batches that are shared are told of before they are needed."""
        return self._link.post(topic, value)

    def fail(self, error: BaseException) -> None:
        """Tells the others that this process ends with an error."""
        self._failed = True
        self._link.fail(f"it failed: {type(error).__name__}: {_first_line(error)}")

    def lost(self) -> Lost | None:
        """The process that is gone; whoever is told of one ends, and has a while for that."""
        if self._link.lost is not None:
            self._noticed.set()
        return self._link.lost

    def close(self) -> None:
        """Leaves the others, so that this process's silence is no loss."""
        self._link.leave()

    def _on_lost(self, lost: Lost) -> None:
        # At once and past logging: jax may end the process any moment.
        with contextlib.suppress(OSError):
            os.write(2, f"estimator: {describe(lost, self.count)}\n".encode())
        threading.Thread(target=self._end_if_stuck, name="process-lost", daemon=True).start()

    def _end_if_stuck(self) -> None:
        """A thread: the main one may wait in a collective for ever, or leave too slowly."""
        if not self._noticed.wait(_GRACE_SECS):
            with contextlib.suppress(OSError):
                os.write(2, b"estimator: this process waits for the lost one and is ended.\n")
        else:
            time.sleep(_GRACE_SECS)
        os._exit(RESUMABLE_EXIT_STATUS)

    def _at_exit(self) -> None:
        if self._link.lost is None and not self._failed:
            self.close()
            return
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(1 if self._failed else RESUMABLE_EXIT_STATUS)


@functools.cache
def connect(processes: Processes, timeout: float = 300.0) -> Connected | Alone:
    """Connects this process with the others of its run; once in the life of the process.

    Raises:
        BackendUnavailableError: some of them are not there; says which.
    """
    import jax

    if jax.distributed.is_initialized():  # by the program, or by Ray: what jax says counts
        return join_initialized()
    _log.info("Process %d of %d (%s): connecting to %s", processes.index, processes.count, processes.source, processes)
    if not processes.coordinator:
        jax.distributed.initialize(**processes.initialize_arguments(), initialization_timeout=round(timeout))
        return join_initialized()
    connected = Connected(processes, timeout=timeout)
    port = chief_says(connected, "jax-port", _free_port())
    address = f"{processes.coordinator.rpartition(':')[0]}:{port}"
    jax.distributed.initialize(**replace(processes, coordinator=address).initialize_arguments())
    return connected


@functools.cache
def join_initialized() -> Connected | Alone:
    """The processes of a `jax.distributed` that the program, or a backend for its pod, has initialised itself."""
    import jax

    if jax.process_count() == 1:
        return ALONE
    import numpy as np
    from jax.experimental import multihost_utils

    text = f"{socket.getfqdn()}:{_free_port()}".encode().ljust(256)
    told = multihost_utils.broadcast_one_to_all(np.frombuffer(text, np.uint8))
    address = bytes(np.asarray(told)).decode().strip()
    group = Processes(address, jax.process_count(), jax.process_index(), "jax.distributed")
    return Connected(group, timeout=300.0)


def _free_port() -> int:
    with socket.create_server(("", 0)) as server:
        return server.getsockname()[1]


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:300]
