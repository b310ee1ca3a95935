"""Early stopping, averages and other hooks of estimator-hooks."""

from tests.mutants.record import Mutant

_ROOM = "plugins/hooks/src/estimator_hooks/"

MUTANTS = (
    Mutant(
        name="nan-is-the-best",
        guarantee="rule 23",
        file=_ROOM + "early_stopping/criteria.py",
        old="if not math.isnan(values[step]) and (best is None",
        new="if (best is None",
        tests=("test_nan_is_worse_than_everything",),
    ),
    Mutant(
        name="nan-cannot-be-beaten",
        guarantee="rule 23",
        file=_ROOM + "early_stopping/criteria.py",
        old="        return not math.isnan(value)\n",
        new="        return False\n",
        tests=("test_nan_is_worse_than_everything",),
    ),
    Mutant(
        name="equal-is-better",
        guarantee="rule 23",
        file=_ROOM + "early_stopping/criteria.py",
        old='{"higher": operator.gt, "lower": operator.lt}',
        new='{"higher": operator.ge, "lower": operator.le}',
        tests=("test_equal_is_not_better",),
    ),
    Mutant(
        name="evaluations-before-min-steps-stop",
        guarantee="rule 23",
        file=_ROOM + "early_stopping/criteria.py",
        old="if step >= self.min_steps and _IS_BETTER",
        new="if _IS_BETTER",
        tests=("test_case_38_higher",),
    ),
    Mutant(
        name="patience-is-a-step-longer",
        guarantee="rule 23",
        file=_ROOM + "early_stopping/criteria.py",
        old="if step - best >= self.max_steps:",
        new="if step - best > self.max_steps:",
        tests=("test_equal_is_not_better",),
    ),
    Mutant(
        name="evaluations-ahead-of-the-run-count",
        guarantee="fault 7",
        file=_ROOM + "early_stopping/evaluated_metric.py",
        old="in read_eval_metrics(self._eval_dir).items() if at <= step}",
        new="in read_eval_metrics(self._eval_dir).items()}",
        tests=("test_evaluations_ahead_of_the_run_do_not_count",),
    ),
    Mutant(
        name="an-unknown-metric-is-waited-for",
        guarantee="fault 7",
        file=_ROOM + "early_stopping/evaluated_metric.py",
        old="elif self._metric not in records[max(records)]:",
        new="elif False:",
        tests=("test_unknown_metric_names_those_that_exist",),
    ),
    Mutant(
        name="the-average-moves-with-the-weights",
        guarantee="rule 24",
        file=_ROOM + "averaging/transformation.py",
        old="decay * average + (1.0 - decay) * weight",
        new="weight",
        tests=("test_the_average_follows_its_formula",),
    ),
    Mutant(
        name="the-average-is-of-the-weights-before",
        guarantee="rule 24",
        file=_ROOM + "averaging/transformation.py",
        old="weights = optax.apply_updates(params, updates)",
        new="weights = params",
        tests=("test_the_average_follows_its_formula",),
    ),
    Mutant(
        name="a-torn-row-ends-the-history",
        guarantee="rule 24",
        file=_ROOM + "history/files.py",
        old="except ValueError:",
        new="except ZeroDivisionError:",
        tests=("test_resume_has_every_row_once",),
    ),
    Mutant(
        name="a-history-repeats-rows-after-a-resume",
        guarantee="rule 24",
        file=_ROOM + "history/hook.py",
        old='for row in rows if row["step"] <= run.step]',
        new="for row in rows]",
        tests=("test_resume_has_every_row_once",),
    ),
    Mutant(
        name="progress-shows-no-loss",
        guarantee="fault 17",
        file=_ROOM + "progress/figures.py",
        old="    if figures.loss is not None:\n",
        new="    if False:\n",
        tests=("test_a_plain_run_shows_progress_logs_the_loss_and_writes_summaries",),
    ),
)
