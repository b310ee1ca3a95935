"""The hook that draws the plots of a head at the end of an evaluation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from estimator_core.hooks import Hook
from estimator_heads.plots import figures
from estimator_heads.plots.pr_curve import pr_curve_event

if TYPE_CHECKING:
    from collections.abc import Mapping

    from estimator_core.hooks import Run
    from estimator_heads.plots.collected import Collected


class PlotHook(Hook):
    """Draws the confusion matrix and the calibration, and for two classes also ROC and precision-recall.

    The images are in the event file of the evaluation as `plots[/<head>]/<plot>`, at the step of the weights. For two
    classes, the file also contains the data of the precision-recall curve, for the page PR CURVES of TensorBoard.

    Args:
        source: the object that the metrics of the head fill.

    Raises:
        PluginError: matplotlib is not installed.
    """

    def __init__(self, source: Collected) -> None:
        figures.require_matplotlib()
        self._source = source

    def begin(self, run: Run) -> None:
        """Discards the data of the previous evaluation."""
        self._source.parts = None

    def end(self, run: Run) -> None:
        """Draws the plots, unless the evaluation did not reach its end."""
        if self._source.parts is None:
            return
        step = int(np.asarray(run.state.clock)[0])  # in an evaluation, the step of the run counts batches
        prefix = f"plots/{self._source.head}" if self._source.head else "plots"
        for plot, pixels in _drawn(self._source.parts, self._source.names).items():
            run.summaries.image(f"{prefix}/{plot}", pixels, step)
        if "roc" in self._source.parts:
            event = pr_curve_event(f"{prefix}/pr_curve", self._source.parts["roc"].at_thresholds())
            run.summaries.event(event, step)


def _drawn(parts: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    matrix, calibration = parts["confusion_matrix"].compute(), parts["calibration"]
    weight, probability, outcome = calibration.bins()
    drawn = {
        "confusion_matrix": figures.confusion_matrix_figure(matrix, names),
        "calibration": figures.calibration_figure(weight, probability, outcome, calibration.compute()),
    }
    if "roc" in parts:
        roc = parts["roc"]
        counts, pr = roc.at_thresholds(), replace(roc, curve="PR")
        drawn["roc"] = figures.roc_figure(counts.false_positive_rate, counts.recall, roc.compute())
        drawn["precision_recall"] = figures.precision_recall_figure(counts.recall, counts.precision, pr.compute())
    return drawn
