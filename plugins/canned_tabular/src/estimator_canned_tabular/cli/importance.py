"""The importance of the columns for the trained model: `--explain`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_core.checkpoint import checkpoint_step
from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentError

if TYPE_CHECKING:
    from estimator_core.estimator import Estimator


def check_possible() -> None:
    """Refuses `--explain`, before any work is done, if it is impossible.

    Raises:
        ArgumentError: estimator-explain is not installed, or several processes train together.
    """
    try:
        import estimator_explain  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        raise ArgumentError("--explain needs estimator-explain: pip install estimator-explain") from None
    group = RunConfig().process_group
    if group is not None and group.count > 1:
        raise ArgumentError(
            f"--explain computes in one process, but {group.count} processes train together here. Leave --explain "
            "out, or train in one process."
        )


def explained(
    estimator: Estimator, input_fn: Callable[..., Any], columns: Sequence[str], metrics: Sequence[str]
) -> tuple[Path, str]:
    """Computes the importance of each column and writes it for the report.

    Args:
        estimator: the trained model.
        input_fn: returns the rows to shuffle.
        columns: the names of the features.
        metrics: the metrics to report, if the evaluation has them. The first one orders the columns.

    Returns:
        The file and a table.
    """
    from estimator_explain import Explanations, permutation_importance, write_explanations
    from estimator_explain.table import table_of

    path = estimator.latest_checkpoint()
    assert path is not None, "only a trained model is explained"
    found = permutation_importance(estimator, input_fn, features=columns, checkpoint_path=path)
    shown = [one for metric in metrics for one in found if one.metric == metric]
    explanations = Explanations(step=checkpoint_step(path), importances=shown)
    return write_explanations(estimator.model_dir, explanations), table_of(explanations)
