"""The processes of a run, connected: what they decide together, and how they end together."""

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
from collections.abc import Callable, Generator
from typing import Any

from estimator_core._cluster.link import Link, Lost, describe
from estimator_core._cluster.processes import Processes
from estimator_core.errors import EstimatorError, PreemptedError, ProcessLostError

_log = logging.getLogger("estimator_core")
#: Exit status after another process was lost: starting all of them again goes on (EX_TEMPFAIL).
RESUMABLE_EXIT_STATUS = 75
#: A collective that waits for a lost process may never return; then the process is ended from outside of it.
_GRACE_SECS = 20.0
#: How long an error of the device network waits for the news of whom it was about.
_NEWS_SECS = 30.0


class Alone:
    """One process: every decision is its own, and nothing costs anything.

    Example:
        >>> Alone().gather("anything", 3)
        [3]
    """

    index = 0
    count = 1
    is_chief = True
    group = None

    def gather(self, channel: str, value: Any = None) -> list[Any]:
        """What every process gave."""
        return [value]

    def post(self, channel: str, value: Any = None) -> Callable[[], list[Any]]:
        """The same, to be waited for later."""
        return lambda: [value]

    def chief_says(self, channel: str, value: Any = None) -> Any:
        """What the chief gave."""
        return value

    def guard(self) -> contextlib.AbstractContextManager[None]:
        """Ends all processes together when one fails."""
        return contextlib.nullcontext()


class Connected:
    """Several processes on `jax.distributed`, with a line between them to agree on."""

    def __init__(self, group: Processes, *, timeout: float) -> None:
        self.group = group
        self.count, self.index = group.count, group.index
        address, count, index = group.coordinator, group.count, group.index
        self.is_chief = index == 0
        self._noticed = threading.Event()
        self._failed = False
        self._link = Link(address, count, index, on_lost=self._on_lost, timeout=timeout)
        # Before jax's own, which would wait minutes for a process that is gone.
        atexit.register(self._at_exit)

    def gather(self, channel: str, value: Any = None) -> list[Any]:
        """What every process gave, in their order.

        Raises:
            ProcessLostError: one of them is gone.
        """
        return self._link.gather(channel, value)

    def post(self, channel: str, value: Any = None) -> Callable[[], list[Any]]:
        """The same, to be waited for later."""
        return self._link.post(channel, value)

    def chief_says(self, channel: str, value: Any = None) -> Any:
        """What the chief gave; the others' values do not matter."""
        return self.gather(channel, value if self.is_chief else None)[0]

    @contextlib.contextmanager
    def guard(self) -> Generator[None]:
        """Ends all processes together when one fails, and says in each which one it was.

        Raises:
            ProcessLostError: in place of whatever error of the device network another process caused.
        """
        try:
            yield
        except ProcessLostError:
            self._noticed.set()
            raise
        except PreemptedError:
            raise
        except BaseException as error:
            lost = self._news_of(error)
            if lost is not None:
                self._noticed.set()
                raise ProcessLostError(describe(lost, self.count), lost.index) from error
            self._failed = True
            self._link.fail(f"it failed: {type(error).__name__}: {_first_line(error)}")
            raise

    def _news_of(self, error: BaseException) -> Lost | None:
        """The lost process behind an error. An error of the network comes before the news of the loss: it waits."""
        import jax

        if isinstance(error, jax.errors.JaxRuntimeError) and not isinstance(error, EstimatorError):
            deadline = time.monotonic() + _NEWS_SECS
            while self._link.lost is None and time.monotonic() < deadline:
                time.sleep(0.05)
        return self._link.lost

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
            self._link.leave()
            return
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(1 if self._failed else RESUMABLE_EXIT_STATUS)


ALONE = Alone()
#: Either of the two.
Peers = Alone | Connected


@functools.cache
def connect(processes: Processes, timeout: float = 300.0) -> Connected:
    """Connects this process with the others of its run; once in the life of the process.

    Raises:
        BackendUnavailableError: some of them are not there; says which.
    """
    import jax

    _log.info("Process %d of %d (%s): connecting to %s", processes.index, processes.count, processes.source, processes)
    peers = Connected(processes, timeout=timeout)
    if not jax.distributed.is_initialized():
        host = processes.coordinator.rpartition(":")[0]
        port = peers.chief_says("jax-port", _free_port())
        jax.distributed.initialize(f"{host}:{port}", processes.count, processes.index)
    return peers


@functools.cache
def join_initialized() -> Peers:
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
