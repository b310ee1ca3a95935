"""An exporter that exports once, when training has ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from estimator_exporters.exporters.base import SavedModelWriter, WritingExporter


class FinalExporter(WritingExporter):
    """Exports when training has ended, for any reason.

    Args:
        name: the name of its directory under `<model_dir>/export`.
        serving_input_receiver_fn: see `ec.export.build_raw_serving_input_receiver_fn`.
        assets_extra: the files to add, from the name in the export to the path.
        format: the name of an export format.

    Raises:
        ArgumentError, ArgumentTypeError: an argument is invalid.

    Example:
        >>> FinalExporter("final", lambda: None).name
        'final'

    Source: `tf.estimator.FinalExporter`.
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        *,
        format: str = "stablehlo",
    ) -> None:
        super().__init__(SavedModelWriter(name, serving_input_receiver_fn, assets_extra, None, format))

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> str | None:
        """Exports if this is the final export."""
        return self._writer.write(estimator, export_path, checkpoint_path) if is_the_final_export else None
