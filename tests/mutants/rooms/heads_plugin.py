"""Losses and metrics of estimator-heads."""

from tests.mutants.record import Mutant

_ROOM = "plugins/heads/src/estimator_heads/"

MUTANTS = (
    Mutant(
        name="soft-labels-are-not-smoothed",
        guarantee="rule 25",
        file=_ROOM + "losses/cross_entropy.py",
        old="target = target * (1.0 - options.label_smoothing) + 0.5 * options.label_smoothing",
        new="pass",
        tests=("test_options_against_their_formula",),
    ),
    Mutant(
        name="smoothing-forgets-the-classes",
        guarantee="rule 25",
        file=_ROOM + "losses/cross_entropy.py",
        old="+ options.label_smoothing / classes",
        new="",
        tests=("test_options_against_their_formula",),
    ),
    Mutant(
        name="the-focal-term-is-the-other-one's",
        guarantee="rule 25",
        file=_ROOM + "losses/cross_entropy.py",
        old="jnp.exp(-options.focal_gamma * minus_log_not_p)",
        new="jnp.exp(-options.focal_gamma * minus_log_p)",
        tests=("test_options_against_their_formula",),
    ),
    Mutant(
        name="class-weights-are-swapped",
        guarantee="rule 25",
        file=_ROOM + "losses/cross_entropy.py",
        old="negative * options.class_weights[0], positive * options.class_weights[1]",
        new="negative * options.class_weights[1], positive * options.class_weights[0]",
        tests=("test_options_against_their_formula",),
    ),
    Mutant(
        name="a-label-out-of-range-is-clipped-in-silence",
        guarantee="rule 25",
        file=_ROOM + "per_example_head.py",
        old="losses = jnp.where(jnp.all(valid, axis=-1, keepdims=True), losses, jnp.nan)",
        new="pass",
        tests=("test_labels_out_of_range_inside_a_trace_make_the_loss_nan",),
    ),
    Mutant(
        name="labels-may-have-another-shape",
        guarantee="rule 25",
        file=_ROOM + "checks.py",
        old="if array.shape != expected:",
        new="if False:",
        tests=("test_refused",),
    ),
    Mutant(
        name="a-score-that-fits-no-bucket-is-dropped",
        guarantee="rule 25",
        file=_ROOM + "metrics/buckets.py",
        old="return values[:-1] if values[-1] == 0 else np.full(len(values) - 1, np.nan)",
        new="return values[:-1]",
        tests=("test_a_nan_score_is_never_hidden_unless_it_has_no_weight",),
    ),
    Mutant(
        name="ties-are-broken-by-the-later-class",
        guarantee="rule 25",
        file=_ROOM + "metrics/top_k.py",
        old="order = jnp.argsort(-scores, axis=-1, stable=True)",
        new="order = jnp.argsort(scores, axis=-1, stable=True)[..., ::-1]",
        tests=("test_top_k_with_ties_and_nan",),
    ),
    Mutant(
        name="a-class-out-of-range-is-the-first",
        guarantee="rule 25",
        file=_ROOM + "metrics/top_k.py",
        old="unusable = ~inside | jnp.isnan(values).any(axis=-1)",
        new="unusable = jnp.isnan(values).any(axis=-1)",
        tests=("test_class_ids_out_of_range_are_never_hidden",),
    ),
    Mutant(
        name="the-area-is-a-sum-of-rectangles",
        guarantee="rule 25",
        file=_ROOM + "metrics/auc.py",
        old="(y[:-1] + y[1:]) / 2.0",
        new="y[1:]",
        tests=("test_auc_is_that_of_scores_cut_to_the_buckets",),
    ),
    Mutant(
        name="a-multi-head-forgets-its-weights",
        guarantee="rule 25",
        file=_ROOM + "multi_head.py",
        old="weight * losses[name] for",
        new="losses[name] for",
        tests=("test_losses_of_a_multi_head_are_weighted",),
    ),
    Mutant(
        name="regularization-is-left-out",
        guarantee="rule 25",
        file=_ROOM + "base_head.py",
        old="return loss if regularization_loss is None else loss + regularization_loss",
        new="return loss",
        tests=("test_train_op_fn_gets_the_regularized_loss",),
    ),
)
