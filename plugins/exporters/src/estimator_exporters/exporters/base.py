"""What every exporter does: check its arguments, write once per step, delete what is superfluous."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.export.directories import collect_garbage

_log = logging.getLogger("estimator_exporters")


class SavedModelWriter:
    """Writes exports of an estimator for one exporter.

    Args:
        name: the exporter's name, its directory below `<model_dir>/export`.
        serving_input_receiver_fn: what a request carries.
        assets_extra: files to add to each export.
        exports_to_keep: newest exports kept; None keeps all.
        format: name of an export format.
    """

    def __init__(
        self, name: str, serving_input_receiver_fn: Callable[[], Any] | None, assets_extra: Mapping[str, str] | None = None, exports_to_keep: int | None = None, format: str = "stablehlo"
    ) -> None:
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"An Exporter cannot have a name that is `None` or empty. Given: {name!r}.")
        if not callable(serving_input_receiver_fn):
            raise ArgumentTypeError(f"Exporter {name!r}: serving_input_receiver_fn must be a function, given: {serving_input_receiver_fn!r}.")
        if exports_to_keep is not None and (isinstance(exports_to_keep, bool) or not isinstance(exports_to_keep, int) or exports_to_keep <= 0):
            raise ArgumentError(f"`exports_to_keep`, if provided, must be a positive number. Got {exports_to_keep}.")
        self.name = name
        self._receiver_fn = serving_input_receiver_fn
        self._assets_extra = dict(assets_extra or {})
        self._keep = exports_to_keep
        self._format = format
        self._written: tuple[str, str] | None = None

    def write(self, estimator: Any, export_path: str, checkpoint_path: str) -> str | None:
        """Exports the checkpoint's state; None when this exporter has exported it already."""
        if self._written == (export_path, checkpoint_path):
            return None
        path = estimator.export_saved_model(export_path, self._receiver_fn, assets_extra=self._assets_extra, format=self._format)
        self._written = (export_path, checkpoint_path)
        for deleted in collect_garbage(export_path, self._keep):
            _log.info("Exporter %s deleted %s (exports_to_keep=%s).", self.name, deleted, self._keep)
        return path
