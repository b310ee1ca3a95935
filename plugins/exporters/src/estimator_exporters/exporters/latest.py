"""An exporter that exports after every evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from estimator_exporters.exporters.base import SavedModelWriter, WritingExporter


class LatestExporter(WritingExporter):
    """Exports after every evaluation and keeps the newest exports.

    Args:
        name: the name of its directory under `<model_dir>/export`.
        serving_input_receiver_fn: see `ec.export.build_raw_serving_input_receiver_fn`.
        assets_extra: the files to add, from the name in the export to the path.
        exports_to_keep: the number of newest exports to keep. None keeps all.
        format: the name of an export format.
        background: whether to write while training continues.

    Raises:
        ArgumentError, ArgumentTypeError: an argument is invalid.

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
        """Exports the model and returns the path."""
        return self._writer.write(estimator, export_path, checkpoint_path)
