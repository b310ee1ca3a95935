"""The exit status of a program that lets the end of its run pass: 75, by which launchers know that it can go on."""

from __future__ import annotations

import functools
import sys
from types import TracebackType

from estimator_core.errors import PreemptedError, ProcessLostError

#: Exit status of a run that was stopped from outside, has saved its state, and can be resumed (EX_TEMPFAIL).
RESUMABLE_EXIT_STATUS = 75


@functools.cache
def ends_resumable() -> None:
    """From now on a PreemptedError or a ProcessLostError that nobody catches is shown as ever, and ends with 75."""
    show = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        show(kind, error, trace)
        if isinstance(error, (PreemptedError, ProcessLostError)):
            raise SystemExit(RESUMABLE_EXIT_STATUS)

    sys.excepthook = hook
