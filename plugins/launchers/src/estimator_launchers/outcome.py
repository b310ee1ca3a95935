"""The combined meaning of the exit statuses of a job's processes."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Final

#: The status of a process that stopped early. A new start continues (EX_TEMPFAIL).
RESUMABLE: Final = 75
_ABORT = 6
#: The statuses of a shell for a process that a signal ended: 128 plus the signal. Higher ones come from programs.
_SHELL_SIGNALS: Final = range(128 + 1, 128 + 32)


def signal_of(status: int) -> int | None:
    """Returns the signal that ended a process, from a status of Popen (negative) or of a shell (129 to 159).

    Example:
        >>> signal_of(-9), signal_of(143), signal_of(75), signal_of(170)
        (9, 15, None, None)
    """
    if status < 0:
        return -status
    return status - 128 if status in _SHELL_SIGNALS else None


def can_go_on(status: int) -> bool:
    """Returns whether a process with this status may be restarted: after 75, a signal, or an abort by jax."""
    return status == RESUMABLE or signal_of(status) is not None


def outcome(statuses: Sequence[int]) -> int:
    """Returns the status of a job from those of its processes, in the order in which they ended.

    If a signal ends a process, the others may fail in any way as a consequence. A process that fails by itself also
    makes others fail, and these may end first.

    Args:
        statuses: the statuses of Popen.

    Returns:
        0, 75, or the status of the process that failed by itself.

    Example:
        >>> outcome([0, 0]), outcome([-9, 1, 75]), outcome([75, 1]), outcome([-6, 75])
        (0, 75, 1, 75)
    """
    bad = [status for status in statuses if status != 0]
    for status in bad:
        number = signal_of(status)
        if number is not None and number != _ABORT:
            return RESUMABLE
        if not can_go_on(status):
            return status
    return RESUMABLE if bad else 0


def in_words(status: int) -> str:
    """Returns an exit status in words.

    Example:
        >>> in_words(-9), in_words(75), in_words(1)
        ('ended by SIGKILL', 'stopped early, can continue', 'failed with status 1')
        >>> in_words(-40)  # most real-time signals have no name
        'ended by signal 40'
    """
    number = signal_of(status)
    if number is not None:
        named = {one.value: one.name for one in signal.Signals}
        return f"ended by {named.get(number, f'signal {number}')}"
    return "stopped early, can continue" if can_go_on(status) else f"failed with status {status}"
