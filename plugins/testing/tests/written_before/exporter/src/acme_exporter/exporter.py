"""An exporter that exports once a metric has reached a goal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import estimator_core.export.directories as directories
from estimator_core.export.contract import Exporter


class AcmeExporterExporter:
    """Exports after each evaluation in which a metric is at or below a goal.

    Args:
        serving_input_receiver_fn: see `ec.export.build_raw_serving_input_receiver_fn`.
        metric: name of the metric.
        goal: its greatest value that is exported.
        name: the directory below `<model_dir>/export`.
        export_format: the name of an export format.
    """

    def __init__(
        self,
        serving_input_receiver_fn: Callable[[], Any],
        metric: str = "loss",
        goal: float = 0.4,
        name: str = "acme_exporter",
        export_format: str = "stablehlo",
    ) -> None:
        self.serving_input_receiver_fn = serving_input_receiver_fn
        self.metric = metric
        self.goal = goal
        self.name = name
        self.export_format = export_format

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> str | None:
        """Exports the checkpoint of this evaluation, unless its step has been exported."""
        done = Path(export_path) / "acme_exporter.last_step"
        step = str(eval_result["global_step"])
        if eval_result[self.metric] > self.goal or (done.is_file() and done.read_text() == step):
            return None
        path = estimator.export_saved_model(
            export_path,
            self.serving_input_receiver_fn,
            checkpoint_path=checkpoint_path,
            format=self.export_format,
        )
        done.write_text(step)
        self.written = len(directories.exports_in(Path(export_path)))
        return path


def every_time(serving_input_receiver_fn: Callable[[], Any]) -> Exporter:
    """One that exports after each evaluation of a new step."""
    return AcmeExporterExporter(serving_input_receiver_fn, goal=float("inf"))
