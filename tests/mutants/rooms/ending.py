"""The end of a call: what a kill after the last save must not cost."""

from tests.mutants.record import Mutant

_ROOM = "estimator_core/_loop/"

MUTANTS = (
    Mutant(
        name="a-killed-call-is-never-ended",
        guarantee="rule 96",
        file=_ROOM + "resuming.py",
        old="return None if chief_says(",
        new="return None if True or chief_says(",
        tests=("test_the_next_call_ends_what_a_killed_one_has_left",),
        in_cut=False,
    ),
    Mutant(
        name="every-end-is-owed",
        guarantee="rule 96",
        file=_ROOM + "resuming.py",
        old='return None if chief_says(processes, "ended-since", ended is not False) else Ending',
        new="return Ending",
        tests=("test_a_call_that_has_ended_does_not_end_again",),
        in_cut=False,
    ),
    Mutant(
        name="an-end-with-a-checkpoint-is-trained-over",
        guarantee="rule 96",
        file=_ROOM + "train_run.py",
        old="elif start.cut_short and source.ended and call.steps is None:",
        new="elif False:",
        tests=("test_an_input_that_had_ended_with_a_checkpoint_does_not_start_again",),
        in_cut=False,
    ),
    Mutant(
        name="a-stop-after-a-save-is-not-kept",
        guarantee="rule 96",
        file=_ROOM + "checkpointing.py",
        old="elif wanted and self._told_to_stop == run.step:",
        new="elif False:",
        tests=("test_a_stop_that_a_listener_asked_for_is_kept",),
        in_cut=False,
    ),
    Mutant(
        name="the-end-is-recorded-before-the-last-exports",
        guarantee="rule 96",
        file=_ROOM + "train_run.py",
        old="            evaluations.finish()\n",
        new="            pass\n",
        tests=("test_the_evaluations_and_exports_at_the_end_are_made_up_for",),
        in_cut=False,
    ),
    # What several say of one save
    Mutant(
        name="a-result-is-that-of-a-checkpoint-before-its-commit",
        guarantee="rule 97",
        file=_ROOM + "ledgers.py",
        old="if result.step <= step]",
        new="if True]",
        tests=("test_a_result_is_written_as_that_of_a_checkpoint_once_this_is_there",),
        in_cut=False,
    ),
    Mutant(
        name="a-process-that-cannot-follow-says-nothing",
        guarantee="rule 97",
        file="estimator_core/_checkpoint/commit_together.py",
        old='        return {**_failure(error), "error": told}\n',
        new="        return {} if told else {}\n",
        tests=("test_one_that_cannot_bring_what_was_saved_ends_all",),
        in_cut=False,
    ),
    Mutant(
        name="a-model-dir-that-is-gone-is-a-lost-process",
        guarantee="rule 97",
        file="estimator_core/_storage/contract.py",
        old="class StorageGoneError(StorageError, SaidByEach):",
        new="class StorageGoneError(StorageError):",
        tests=("test_a_model_dir_that_is_gone_is_said_by_each",),
        in_cut=False,
    ),
    Mutant(
        name="a-stop-in-the-last-export-ends-the-run",
        guarantee="rule 96",
        file=_ROOM + "train_run.py",
        old="        if asked:  # the end",
        new="        if asked and self._ledger.end(run.step, reason, failed=False) is None:  # the end",
        tests=("test_what_happens_in_the_last_export_is_told",),
        in_cut=False,
    ),
    Mutant(
        name="an-evaluation-between-saves-takes-the-place-of-one-with-exports",
        guarantee="rule 256",
        file="estimator_core/_loop/checkpointing.py",
        old="self._evaluations is not None and self.owed_step != self._run.step:",
        new="self._evaluations is not None:",
        tests=("test_what_is_broken_off_at_a_checkpoint_is_exported_when_it_is_made_up_for",),
        in_cut=False,
    ),
)
