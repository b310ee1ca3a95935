"""What a run leaves to look at: TensorBoard event files, and one line of metrics per evaluation."""

from estimator_core._summaries.eval_metrics import append_eval_metrics, forget_later_eval_metrics, read_eval_metrics
from estimator_core._summaries.event_file import EventFile, open_summary_writer
from estimator_core._summaries.no_summaries import NO_SUMMARIES, NoSummaries

__all__ = [
    "NO_SUMMARIES",
    "EventFile",
    "NoSummaries",
    "append_eval_metrics",
    "forget_later_eval_metrics",
    "open_summary_writer",
    "read_eval_metrics",
]
