"""The visible results of a run: TensorBoard event files, and one line of metrics per evaluation."""

from estimator_core._summaries.eval_metrics import append_line as append_line
from estimator_core._summaries.eval_metrics import plain_metrics as plain_metrics
from estimator_core._summaries.eval_metrics import read_eval_metrics as read_eval_metrics
from estimator_core._summaries.eval_metrics import read_eval_records as read_eval_records
from estimator_core._summaries.event_file import NO_SUMMARIES as NO_SUMMARIES
from estimator_core._summaries.event_file import EventFile as EventFile
from estimator_core._summaries.event_file import NoSummaries as NoSummaries
from estimator_core._summaries.event_file import Written as Written
from estimator_core._summaries.event_file import event_files_below as event_files_below
from estimator_core._summaries.event_file import open_summary_writer as open_summary_writer
from estimator_core._summaries.event_file import try_lock as try_lock
