"""Mutants of BERT: the bits of dropout, and the stored activations."""

from tests.mutants.record import Mutant

_FILE = "plugins/canned_bert/src/estimator_canned_bert/encoder/random_bits.py"

MUTANTS = (
    Mutant(
        name="the-same-half-of-a-hash-twice",
        guarantee="rule 201",
        file=_FILE,
        old="(word & 0xFFFF, word >> 16)",
        new="(word & 0xFFFF, word & 0xFFFF)",
        tests=("test_neighbours_are_not_correlated",),
        in_cut=False,
    ),
    Mutant(
        name="rows-draw-the-same-bits",
        guarantee="rule 201",
        file=_FILE,
        old="axis) * jnp.uint32(stride)",
        new="axis) * jnp.uint32(stride % 2)",
        tests=("test_neighbours_are_not_correlated",),
        in_cut=False,
    ),
    Mutant(
        name="huge-arrays-repeat-their-bits",
        guarantee="rule 201",
        file=_FILE,
        old="if _count(shape) <= _MOST:",
        new="if True:",
        tests=("test_no_two_places_of_a_huge_array_have_the_same_counters",),
        in_cut=False,
    ),
    Mutant(
        name="a-rate-of-nearly-one-does-not-fit",
        guarantee="rule 201",
        file=_FILE.replace("random_bits", "layers"),
        old="min(round(rate * 65536), 65535)",
        new="round(rate * 65536)",
        tests=("test_dropout_of_nearly_everything_keeps_one_in_65536",),
        in_cut=False,
    ),
    Mutant(
        name="a-gelu-keeps-its-parts",
        guarantee="rule 205",
        file=_FILE.replace("random_bits", "layers"),
        old="jax.checkpoint(lambda x: jax.nn.gelu(x, approximate=False))",
        new="lambda x: jax.nn.gelu(x, approximate=False)",
        tests=("test_a_gelu_keeps_its_inputs_alone",),
        in_cut=False,
    ),
    Mutant(
        name="a-negative-token-id-counts-from-the-end",
        guarantee="rule 207",
        file=_FILE.replace("random_bits", "apply"),
        old="(ids >= 0) & (ids < config.vocab_size)",
        new="(ids < config.vocab_size)",
        tests=("test_a_row_with_a_number_out_of_range_is_nan_and_others_are_as_before",),
        in_cut=False,
    ),
    Mutant(
        name="a-padded-place-is-nan",
        guarantee="rule 207",
        file=_FILE.replace("random_bits", "apply"),
        old="jnp.where(mask > 0, config.vocab_size, 0)",
        new="config.vocab_size",
        tests=("test_a_row_with_a_number_out_of_range_is_nan_and_others_are_as_before",),
        in_cut=False,
    ),
)
