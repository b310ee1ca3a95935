"""Turns signals of the platform into a flag that the loop polls: save at the next safe point, then stop."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeAlias

from estimator_core.errors import PreemptedError, ProcessLostError

_Handler: TypeAlias = Callable[[int, FrameType | None], Any] | int | None
_log = logging.getLogger("estimator_core.checkpoint")

#: The exit status of a run that was stopped from outside, has saved its state, and can be resumed (EX_TEMPFAIL).
RESUMABLE_EXIT_STATUS = 75
#: These always request a stop.
_ALWAYS = (signal.SIGTERM, signal.SIGINT)
#: These request a stop unless they have another handler: a closed terminal (unless `nohup` ignores it), and the
#: warnings that Slurm (`--signal`) and other schedulers send before they end a job. By default each would kill the
#: process.
_UNLESS_HANDLED = tuple(getattr(signal, name) for name in ("SIGHUP", "SIGUSR1", "SIGUSR2") if hasattr(signal, name))
#: A signal this soon after the first is the same one, because terminals and launchers both forward it.
_SAME_SIGNAL_SECS = 0.25


class Preemption:
    """Records a request to stop. The loop polls `requested`, saves and ends.

    Handlers are installed only in the main thread, and the previous ones are restored on exit. The same signal again,
    or a SIGINT, stops at once, as if this object did not exist: SIGINT raises KeyboardInterrupt, SIGTERM ends the
    process. Another signal does not, because schedulers warn first and send SIGTERM later, during the save. A request
    that is not a signal, such as a notice of the platform, calls `request`, from any thread.

    If the context is still open when the grace time is over, the log reports what the run is waiting for, with the
    stacks of all threads. The run continues: a late save is better than none, and the platform ends it anyway.

    A block that ends without an error has not obeyed the signal. So the handler that the program had before is then
    called, so that the next part of the program does not begin.

    Args:
        grace_secs: the seconds that the platform lets a process live after the request. None: no known limit.
        signals: the signals that count as a request. None: SIGTERM and SIGINT, and SIGHUP, SIGUSR1 and SIGUSR2 if the
            process has no handler of its own for them and does not ignore them.

    Example:
        >>> with Preemption(grace_secs=30) as preemption:
        ...     signal.raise_signal(signal.SIGTERM)
        ...     preemption.requested, preemption.reason
        (True, 'SIGTERM')
    """

    def __init__(
        self,
        *,
        grace_secs: float | None = None,
        signals: tuple[signal.Signals, ...] | None = None,
    ) -> None:
        self.requested = False
        self._reason: str | None = None
        self._time = 0.0
        self._pid = os.getpid()
        self._first: int | None = None  # the number of the signal that requested the stop
        self._grace_secs = grace_secs
        self._signals = signals
        self._previous: dict[signal.Signals, _Handler] = {}
        self.waiting_for: Callable[[], str] = _not_known
        # The only way to wake a thread that is allowed in a signal handler is the `put` of this queue.
        self._news: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._watch: threading.Thread | None = None

    @property
    def reason(self) -> str | None:
        """The name of the signal, or the notice of the platform. None before a request."""
        return self._reason

    def remaining(self) -> float | None:
        """Returns the remaining seconds of the grace time, never negative; None without a request or a limit."""
        if not self.requested or self._grace_secs is None:
            return None
        return max(0.0, self._time + self._grace_secs - time.monotonic())

    def request(self, reason: str) -> None:
        """Requests that the run saves and stops. The first reason is kept."""
        if self.requested:
            return
        self._time = time.monotonic()
        self._reason = reason
        self.requested = True
        self._news.put(True)

    def __enter__(self) -> Preemption:
        if threading.current_thread() is threading.main_thread():
            _ends_resumable()
            for number in _wanted() if self._signals is None else self._signals:
                self._previous[number] = signal.signal(number, self._handle)
        if self._grace_secs is not None:
            self._watch = threading.Thread(target=self._watch_grace, name="grace", daemon=True)
            self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        late = None if error is not None else self._first
        own = None if late is None else self._previous.get(signal.Signals(late))
        self._restore()
        if self._watch is not None:
            self._news.put(False)
            self._watch.join()
            self._watch = None
        if late is not None and callable(own) and own is not signal.default_int_handler:
            signal.raise_signal(late)

    def _watch_grace(self) -> None:
        if not self._news.get():
            return
        try:
            while self._news.get(timeout=self.remaining()):
                pass
        except queue.Empty:
            _log.error(
                "The grace time of %g s since %s is over (RunConfig.grace_secs) and the run still waits for "
                "%s. What every thread is doing:\n%s",
                self._grace_secs,
                self._reason,
                self.waiting_for(),
                _stacks(),
            )

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._pid:  # a forked worker must stop when its parent requests it
            self._restore()
            signal.raise_signal(number)
        elif not self.requested:
            name = signal.Signals(number).name
            self._first = number
            self.request(name)
            with contextlib.suppress(OSError):  # a handler may interrupt a write of logging, so it cannot log
                os.write(2, f"{name}: saving and stopping; the same signal again stops at once.\n".encode())
        elif number in (self._first, signal.SIGINT) and time.monotonic() - self._time > _SAME_SIGNAL_SECS:
            self._restore()
            signal.raise_signal(number)

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            # None: the handler was not installed from Python and cannot be restored from it.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._previous = {}


@functools.cache
def _ends_resumable() -> None:
    """Sets the exit status of an uncaught PreemptedError or ProcessLostError to 75. The error is still shown."""
    show = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        show(kind, error, trace)
        if isinstance(error, (PreemptedError, ProcessLostError)):
            raise SystemExit(RESUMABLE_EXIT_STATUS)

    sys.excepthook = hook


def _wanted() -> tuple[signal.Signals, ...]:
    return (*_ALWAYS, *(number for number in _UNLESS_HANDLED if signal.getsignal(number) is signal.SIG_DFL))


def _not_known() -> str:
    return "something unknown"


def _stacks() -> str:
    """Returns the stacks of all threads except this one, beginning with the main thread."""
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - documented
    threads = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    return "\n".join(
        f"Thread {thread.name}:\n{''.join(traceback.format_stack(frames[thread.ident]))}"
        for thread in sorted(threads, key=lambda thread: thread is not threading.main_thread())
        if thread.ident in frames
    )
