"""Figures as pixels: confusion matrix, ROC, precision-recall and calibration."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from estimator_core.errors import PluginError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]

_SIZE = (5.0, 4.5)  # inches
_DPI = 100
_MOST_NUMBERS = 20  # the number of classes up to which the cells of a confusion matrix show their counts


def confusion_matrix_figure(matrix: NDArray[np.float64], names: Sequence[str]) -> Pixels:
    """Returns a confusion matrix, colored by the fraction of each label.

    Args:
        matrix: [classes, classes]. Rows are labels, and columns are predictions.
        names: the names of the classes.

    Returns:
        uint8 [height, width, 3], the pixels.

    Raises:
        PluginError: matplotlib is not installed.
    """

    def draw(axes: Any) -> None:
        sums = matrix.sum(axis=1, keepdims=True)
        shares = np.divide(matrix, sums, out=np.zeros_like(matrix), where=sums != 0)
        axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
        axes.set(xlabel="predicted", ylabel="label", title="confusion matrix")
        if len(names) <= _MOST_NUMBERS:
            axes.set_xticks(range(len(names)), labels=names, rotation=45, ha="right")
            axes.set_yticks(range(len(names)), labels=names)
            for (row, column), count in np.ndenumerate(matrix):
                colour = "white" if shares[row, column] > 0.5 else "black"
                axes.text(column, row, f"{count:.6g}", ha="center", va="center", color=colour, fontsize=8)

    return _pixels(draw)


def roc_figure(false_positive_rate: NDArray[np.float64], recall: NDArray[np.float64], area: float) -> Pixels:
    """Returns the ROC curve. The arguments are the rates at each threshold and the area under it."""

    def draw(axes: Any) -> None:
        axes.plot(false_positive_rate, recall)
        axes.plot([0, 1], [0, 1], linestyle=":", color="grey")
        axes.set(xlabel="false positive rate", ylabel="true positive rate", title=f"ROC, area {area:.4f}")

    return _pixels(draw)


def precision_recall_figure(recall: NDArray[np.float64], precision: NDArray[np.float64], area: float) -> Pixels:
    """Returns the precision-recall curve. The arguments are the rates at each threshold and the area under it."""

    def draw(axes: Any) -> None:
        shown = precision + recall > 0
        axes.plot(recall[shown], precision[shown])
        axes.set(xlabel="recall", ylabel="precision", title=f"precision and recall, area {area:.4f}")
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))

    return _pixels(draw)


def calibration_figure(
    weight: NDArray[np.float64], probability: NDArray[np.float64], outcome: NDArray[np.float64], error: float
) -> Pixels:
    """Returns the curve of observed frequency against predicted probability.

    The arguments are the sums of `CalibrationError.bins` and the error.
    """

    def draw(axes: Any) -> None:
        used = weight > 0
        axes.plot(probability[used] / weight[used], outcome[used] / weight[used], marker="o")
        axes.plot([0, 1], [0, 1], linestyle=":", color="grey")
        axes.set(xlabel="stated probability", ylabel="observed frequency", title=f"calibration, error {error:.4f}")
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))

    return _pixels(draw)


def require_matplotlib() -> None:
    """Refuses to plot without matplotlib.

    Raises:
        PluginError: matplotlib is not installed.
    """
    try:
        importlib.import_module("matplotlib")
    except ImportError as error:
        raise PluginError(
            "plots=True needs matplotlib, which is not installed. Install estimator-heads[plots], or leave plots off."
        ) from error


def _pixels(draw: Callable[[Any], None]) -> Pixels:
    require_matplotlib()
    # The object interface has no window and no global state, so it is safe in any thread.
    agg: Any = importlib.import_module("matplotlib.backends.backend_agg")
    figures: Any = importlib.import_module("matplotlib.figure")

    figure = figures.Figure(figsize=_SIZE, dpi=_DPI, layout="constrained")
    canvas = agg.FigureCanvasAgg(figure)
    draw(figure.add_subplot())
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
