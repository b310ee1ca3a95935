"""Packed sentences of estimator-canned-bert."""

from tests.mutants.record import Mutant

_ROOM = "plugins/canned_bert/src/estimator_canned_bert/"

MUTANTS = (
    Mutant(
        name="packed-sentences-see-each-other",
        guarantee="rule 92",
        file=_ROOM + "encoder/packed.py",
        old="sentences[:, :, None] == sentences[:, None, :]",
        new="(sentences[:, :, None] > 0) == (sentences[:, None, :] > 0)",
        tests=("test_sentences_of_a_row_see_nothing_of_each_other",),
        in_cut=False,
    ),
    Mutant(
        name="packed-positions-do-not-restart",
        guarantee="rule 92",
        file=_ROOM + "encoder/packed.py",
        old="jnp.where(sentences != before, at, 0)",
        new="jnp.where(sentences == 0, at, 0)",
        tests=("test_loss_logits_and_gradients_are_those_of_a_sentence_a_row",),
        in_cut=False,
    ),
    Mutant(
        name="packed-examples-come-in-the-order-of-the-rows",
        guarantee="rule 92",
        file=_ROOM + "text/packing.py",
        old="firsts[: len(places)] = places",
        new="firsts[: len(places)] = np.sort(places)",
        tests=("test_training_evaluation_and_predictions_are_those_of_a_sentence_a_row",),
        in_cut=False,
    ),
    Mutant(
        name="packing-starts-an-epoch-again",
        guarantee="rule 92",
        file=_ROOM + "text/batches.py",
        old='int(state["epoch"]), int(state["batch"])',
        new='int(state["epoch"]), 0',
        tests=("test_a_position_is_that_of_a_sentence_a_row_and_is_taken_up",),
    ),
)
