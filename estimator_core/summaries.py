"""The visible results of a run: TensorBoard event files, and one line of metrics per evaluation."""

from estimator_core._loop.run_record import without_secrets
from estimator_core._summaries.eval_metrics import append_eval_metrics, read_eval_metrics

__all__ = [
    "append_eval_metrics",
    "read_eval_metrics",
    "without_secrets",
]
