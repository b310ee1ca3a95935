"""The log lines of a run as JSON."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any, TextIO

from estimator_core.errors import ArgumentError
from estimator_core.hooks import Hook, Run


class JsonLogHook(Hook):
    """Writes the log lines of a call as JSON, one object per line, in addition to other log handlers.

    A line has time, level, logger, message, and the mode and model_dir of the run.

    Args:
        stream: the stream to write to. None: stderr.
        level: the lowest level to write. A logger without a level passes only warnings.

    Raises:
        ArgumentError: python-json-logger is not installed; raised in the run.

    Example:
        >>> JsonLogHook().next_step(0) is None
        True
    """

    place = "early"

    def __init__(self, stream: TextIO | None = None, *, level: int = logging.INFO) -> None:
        self._stream = stream
        self._level = level
        self._handler: logging.Handler | None = None

    def begin(self, run: Run) -> None:
        """Starts writing."""
        try:
            formatters: Any = import_module("pythonjsonlogger.json")
        except ImportError as error:
            raise ArgumentError(
                "JsonLogHook needs python-json-logger. Install it: pip install 'estimator-hooks[telemetry]'"
            ) from error
        handler = logging.StreamHandler(self._stream)
        handler.setLevel(self._level)
        handler.setFormatter(
            formatters.JsonFormatter(
                "%(levelname)s %(name)s %(message)s",
                rename_fields={"levelname": "level", "name": "logger"},
                static_fields={"mode": run.mode, "model_dir": str(run.model_dir)},
                timestamp="time",
            )
        )
        logging.getLogger().addHandler(handler)
        self._handler = handler

    def end(self, run: Run) -> None:
        """Stops writing."""
        if self._handler is not None:
            logging.getLogger().removeHandler(self._handler)
            self._handler = None
