"""One writer, one order: epochs, records, names of checkpoints, event files."""

from tests.mutants.record import Mutant

_JOURNAL = "estimator_core/_journal/"
_CHECKPOINT = "estimator_core/_checkpoint/"

MUTANTS = (
    Mutant(
        name="a-superseded-run-goes-on-publishing",
        guarantee="rule 43",
        file=_JOURNAL + "writer.py",
        old="        if self.lineage.epoch != self._epoch:\n            raise",
        new="        if False:\n            raise",
        tests=("test_a_superseded_writer_records_nothing_more_and_names_its_successor",),
    ),
    Mutant(
        name="a-run-goes-on-in-another-model-dir",
        guarantee="rule 43",
        file=_JOURNAL + "writer.py",
        old="if identity != lineage.identity:",
        new="if False:",
        tests=("test_a_removed_model_dir_stops_the_run_and_is_not_made_again",),
    ),
    Mutant(
        name="a-second-writer-of-a-record-wins",
        guarantee="rule 43",
        file=_JOURNAL + "writer.py",
        old="return storage.get(key) == data",
        new="return True",
        tests=("test_of_many_starts_at_once_each_has_an_epoch_of_its_own",),
    ),
    Mutant(
        name="what-was-recorded-after-the-start-counts",
        guarantee="rule 44",
        file=_JOURNAL + "lineage.py",
        old="_go_back(lineage, entry.step)",
        new="pass",
        tests=("test_going_back_drops_what_was_recorded_after_the_step",),
    ),
    Mutant(
        name="a-directory-is-believed-by-its-name",
        guarantee="rule 45",
        file=_CHECKPOINT + "catalog.py",
        old="return Listed(step=step, path=path) if found == step else None",
        new="return Listed(step=step, path=path)",
        tests=("test_a_copy_under_a_later_name_is_not_the_newest",),
        in_cut=False,
    ),
    Mutant(
        name="a-copy-in-the-way-is-deleted",
        guarantee="rule 45",
        file=_CHECKPOINT + "journaled.py",
        old="if (saved.step, digest) in self._doomed.values():",
        new="if True:",
        tests=("test_a_copy_in_the_way_of_a_save_is_kept_under_another_name",),
        in_cut=False,
    ),
    Mutant(
        name="a-fifo-keeps-readers-waiting",
        guarantee="rule 45",
        file=_CHECKPOINT + "file_checks.py",
        old="if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):",
        new="if False:",
        tests=("test_links_and_fifos_are_refused_and_nobody_waits",),
        in_cut=False,
    ),
    Mutant(
        name="points-after-the-last-checkpoint-stay",
        guarantee="rule 44",
        file=_JOURNAL + "views.py",
        old="elif path.stat().st_size > size or",
        new="elif",
        tests=("test_the_audit_finds_and_mends[bytes beyond]",),
        in_cut=False,
    ),
    Mutant(
        name="a-held-request-that-is-refused-counts-as-made",
        guarantee="rule 78",
        file="estimator_core/_journal/writer.py",
        old="            return storage.get(key) == data  # the nonce",
        new="            return True  # the nonce",
        tests=("test_a_writer_whose_network_pauses_is_refused",),
        in_cut=False,
    ),
    Mutant(
        name="a-result-at-a-save-stays-one-between-checkpoints",
        guarantee="rule 81",
        file="estimator_core/_loop/ledgers.py",
        old="self._held(one) if (version, one.step) == held else one",
        new="one",
        tests=("test_a_result_of_the_very_values_a_checkpoint_holds_is_one_of_it",),
        in_cut=False,
    ),
    Mutant(
        name="a-result-of-replaced-weights-is-one-of-the-checkpoint",
        guarantee="rule 81",
        file="estimator_core/_loop/ledgers.py",
        old="if (version, one.step) == held else one",
        new="if one.step == held[1] else one",
        tests=("test_a_result_of_the_very_values_a_checkpoint_holds_is_one_of_it",),
        in_cut=False,
    ),
)
