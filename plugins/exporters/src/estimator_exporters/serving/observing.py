"""Observers of the requests of a server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from estimator_exporters.serving.request_log import Recorder, unrecorded
from estimator_exporters.serving.telemetry import Tracing, untraced


@dataclass(frozen=True, kw_only=True)
class Observing:
    """The observers of requests; none by default.

    Attributes:
        recorder: returns what sees the arrays of the requests of a model.
        tracing: returns the context of a request.
        close: called at the end.
    """

    recorder: Recorder = unrecorded
    tracing: Tracing = untraced
    close: Callable[[], None] = lambda: None


NOBODY = Observing()
