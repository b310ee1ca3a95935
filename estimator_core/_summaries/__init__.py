"""What a run leaves to look at: TensorBoard event files, and one line of metrics per evaluation."""

from estimator_core._summaries.eval_metrics import forget_later_eval_metrics as forget_later_eval_metrics
from estimator_core._summaries.eval_metrics import read_eval_metrics as read_eval_metrics
from estimator_core._summaries.event_file import EventFile as EventFile
from estimator_core._summaries.event_file import open_summary_writer as open_summary_writer
from estimator_core._summaries.no_summaries import NO_SUMMARIES as NO_SUMMARIES
from estimator_core._summaries.no_summaries import NoSummaries as NoSummaries
