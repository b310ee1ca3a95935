"""Exports after every evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from estimator_exporters.exporters.base import SavedModelWriter, WritingExporter


class LatestExporter(WritingExporter):
    """Exports after every evaluation and keeps the newest.

    Args:
        name: its directory below `<model_dir>/export`.
        serving_input_receiver_fn: see `ec.export.build_raw_serving_input_receiver_fn`.
        assets_extra: files to add: name in the export to path.
        exports_to_keep: newest exports kept; None keeps all.
        format: name of an export format.
        background: write while training continues.

    Raises:
        ArgumentError, ArgumentTypeError: for arguments that cannot be used.

    Example:
        >>> LatestExporter("latest", lambda: None).name
        'latest'

    Source: `tf.estimator.LatestExporter`.
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        exports_to_keep: int | None = 5,
        *,
        format: str = "stablehlo",
        background: bool = False,
    ) -> None:
        super().__init__(
            SavedModelWriter(name, serving_input_receiver_fn, assets_extra, exports_to_keep, format, background)
        )

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> str | None:
        """Exports the model; returns the path."""
        return self._writer.write(estimator, export_path, checkpoint_path)
