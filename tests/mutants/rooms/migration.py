"""Mutants of what those who come from tf.estimator rely on: results of checkpoints, crosses, checks before step 1."""

from tests.mutants.record import Mutant

MUTANTS = (
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
    Mutant(
        name="a-cross-drops-unknown-words",
        guarantee="rule 82",
        file="plugins/canned_tabular/src/estimator_canned_tabular/columns/crossed.py",
        old="if isinstance(part, VOCABULARIES):",
        new="if False:",
        tests=("test_a_cross_of_dense_features_and_unknown_words_has_the_buckets_of_tensorflow_2_15_1",),
        in_cut=False,
    ),
    Mutant(
        name="an-experiment-evaluates-checkpoints-that-are-not-due",
        guarantee="rule 81",
        file="plugins/experiment/src/estimator_experiment/evaluations.py",
        old="if ends or (self._every and run.step % self._every == 0):",
        new="if True:",
        tests=("test_an_evaluation_due_at_the_step_of_a_checkpoint_is_one_of_it",),
        in_cut=False,
    ),
)
