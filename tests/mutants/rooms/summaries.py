"""Mutants of the records of evaluations, and of event files."""

from tests.mutants.record import Mutant

_ROOM = "estimator_core/_summaries/"

MUTANTS = (
    Mutant(
        name="evaluations-of-a-killed-run-count",
        guarantee="rule 19",
        file=_ROOM + "eval_metrics.py",
        old='if step <= record["resumed_from"]',
        new="if True",
        tests=("test_a_line_of_an_older_release_drops_the_results_after_its_step",),
    ),
    Mutant(
        name="a-line-is-joined-to-a-torn-one",
        guarantee="rule 19",
        file=_ROOM + "eval_metrics.py",
        old="if _ends_torn(file):",
        new="if False:",
        tests=("test_a_torn_line_loses_that_evaluation_only",),
    ),
    Mutant(
        name="evaluations-without-a-checkpoint-count-as-others",
        guarantee="rule 19",
        file=_ROOM + "eval_metrics.py",
        old='elif not (with_checkpoint and record.get("between_checkpoints")):',
        new="else:",
        tests=("test_results_without_a_checkpoint_can_be_left_out",),
    ),
    Mutant(
        name="evaluations-come-in-the-order-of-their-lines",
        guarantee="rule 19",
        file=_ROOM + "eval_metrics.py",
        old="return dict(sorted(results.items()))",
        new="return results",
        tests=("test_the_later_line_of_a_step_wins_and_steps_are_sorted",),
    ),
    Mutant(
        name="a-torn-line-ends-the-reader",
        guarantee="rule 19",
        file=_ROOM + "eval_metrics.py",
        old="except (ValueError, KeyError, TypeError, RecursionError):",
        new="except (KeyError, TypeError):",
        tests=("test_a_torn_line_is_named",),
    ),
    Mutant(
        name="a-resumed-run-shows-points-twice",
        guarantee="rule 20",
        file=_ROOM + "event_file.py",
        old="step=self._resume_step + 1",
        new="step=self._resume_step + 1000",
        tests=("test_a_resumed_run_leaves_no_point_twice",),
    ),
    Mutant(
        name="two-writers-share-a-directory",
        guarantee="rule 20",
        file=_ROOM + "event_file.py",
        old="event_file = _open_files.get(path)",
        new="event_file = None",
        tests=("test_one_writer_per_directory",),
    ),
    Mutant(
        name="flush-leaves-points-behind",
        guarantee="rule 20",
        file=_ROOM + "event_file.py",
        old="            self.encode()\n            if self._file is not None and self._dirty:\n                self._file.flush()",
        new="            if self._file is not None:\n                self._file.flush()",
        tests=("test_flushed_points_are_written",),
    ),
    Mutant(
        name="histograms-hold-nan",
        guarantee="rule 20",
        file=_ROOM + "event_file.py",
        old="flat = flat[np.isfinite(flat)]",
        new="pass",
        tests=("test_histograms_leave_out_what_is_not_finite",),
    ),
    Mutant(
        name="a-hook-of-an-evaluation-hides-its-directory",
        guarantee="rule 330",
        file="estimator_core/_builtin_hooks/hook_parts.py",
        old="step = run.step if run.mode == ModeKeys.TRAIN else None",
        new="step = run.step",
        tests=("test_the_own_directory_of_a_summary_hook_keeps_every_evaluation",),
        in_cut=False,
    ),
    Mutant(
        name="a-training-removes-what-hooks-of-evaluations-wrote",
        guarantee="rule 330",
        file="estimator_core/_builtin_hooks/hook_parts.py",
        old='None if getattr(run.summaries, "held", False) else getattr(run.summaries, "epoch", None)',
        new='getattr(run.summaries, "epoch", None)',
        tests=("test_the_own_directory_of_a_summary_hook_keeps_every_evaluation",),
        in_cut=False,
    ),
)
