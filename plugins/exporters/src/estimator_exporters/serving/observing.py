"""Observers of the requests of a server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from estimator_exporters.serving.request_log import Recorder, unrecorded
from estimator_exporters.serving.telemetry import Tracing, untraced


@dataclass(frozen=True, kw_only=True)
class Observing:
    """The observers of requests. By default there are none.

    Attributes:
        recorder: returns the function that receives the arrays of the requests of a model.
        tracing: returns the tracing context of a request.
        close: called at the end of the server.
    """

    recorder: Recorder = unrecorded
    tracing: Tracing = untraced
    close: Callable[[], None] = lambda: None


NOBODY = Observing()
