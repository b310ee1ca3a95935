"""BERT: the bits of dropout."""

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
)
