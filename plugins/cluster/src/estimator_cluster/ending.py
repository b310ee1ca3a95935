"""Ends a process. Process 0, which holds the service, leaves last."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time

from estimator_cluster import service
from estimator_cluster.liveness import Watch
from estimator_core.coordinator import Lost

_log = logging.getLogger("estimator_cluster")
#: The exit status after another process was lost (EX_TEMPFAIL). A restart of all processes continues the run.
RESUMABLE_EXIT_STATUS = 75
#: The seconds that process 0 waits at its end for processes that are alive and have not ended.
_LINGER_SECS = 300.0
_WARN_SECS = 30.0


def leave(watch: Watch, index: int, count: int, *, owned: bool) -> None:
    """Ends cleanly: reports that this process is done. Process 0 waits until the other processes have left.

    Args:
        watch: the watch of the run.
        index: the index of this process.
        count: the number of processes.
        owned: whether this package has connected jax, and has to disconnect it.
    """
    watch.leave()
    if index == 0:
        _wait_for_others(watch, count, _LINGER_SECS)
    watch.end()
    if not owned:
        return
    if index == 0:
        watch.alone.wait(2 * _WARN_SECS)  # they disconnect at once, or are found dead
    service.stop()
    watch.join(2.0)


def end_now(watch: Watch, index: int, count: int, status: int, *, grace_secs: float) -> None:
    """Ends this process with a status, without the exit handlers that would wait for a lost process."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    telling = threading.Thread(target=watch.tell, args=("left", index), daemon=True)
    telling.start()
    # A failed process 0 waits for this message. A killed or frozen one does not answer, and jax aborts soon.
    telling.join(2.0 if watch.lost is None or watch.lost.index else 0.2)
    if index == 0:  # the end of the service aborts all processes that are still connected
        _wait_for_others(watch, count, 2 * grace_secs + 2.0)
        time.sleep(0.2)
    os._exit(status)


def describe_at_once(lost: Lost, count: int) -> None:
    """Writes which process is lost, without logging, because this process may be ended at any moment."""
    with contextlib.suppress(OSError):
        os.write(2, f"estimator: {lost.describe(count)}\n".encode())


def _wait_for_others(watch: Watch, count: int, seconds: float) -> None:
    began = time.monotonic()
    warned = False
    while time.monotonic() - began < seconds:
        with contextlib.suppress(ConnectionError):
            watch.refresh()
        gone = watch.left | ({watch.lost.index} if watch.lost is not None else set()) | {0}
        if len(gone) == count:
            return
        if not warned and time.monotonic() - began > _WARN_SECS:
            warned = True
            _log.warning(
                "Process 0 has finished and waits up to %.0f s for processes %s, which need its coordination service.",
                seconds,
                sorted(set(range(count)) - gone),
            )
        time.sleep(0.05)
