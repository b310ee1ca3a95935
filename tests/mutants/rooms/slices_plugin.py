"""Slices of evaluations, of estimator-slices."""

from tests.mutants.record import Mutant

_ROOM = "plugins/slices/src/estimator_slices/"

MUTANTS = (
    Mutant(
        name="a-slice-is-all-but-itself",
        guarantee="rule 71",
        file=_ROOM + "fold.py",
        old="jnp.any(keys.slots == slot, axis=1)",
        new="jnp.any(keys.slots != slot, axis=1)",
        tests=("test_equal_to_scikit_learn_on_each_filtered_subset",),
    ),
    Mutant(
        name="padding-counts-in-slices",
        guarantee="rule 71",
        file=_ROOM + "tally.py",
        old="np.unique(slots[drawn.real], return_counts=True)",
        new="np.unique(slots, return_counts=True)",
        tests=("test_padding_is_in_no_slice",),
    ),
    Mutant(
        name="late-slices-have-no-room",
        guarantee="rule 71",
        file=_ROOM + "tally.py",
        old="elif self._table.seen.shape[0] < room:",
        new="elif self._table.seen.shape[0] < 0:",
        tests=("test_slices_that_appear_late_grow_beyond_the_first_room",),
    ),
    Mutant(
        name="intervals-too-narrow",
        guarantee="rule 72",
        file=_ROOM + "jackknife.py",
        old="(groups - 1) / groups * math.fsum",
        new="1 / groups * math.fsum",
        tests=("test_it_holds_the_true_value_as_often_as_it_says",),
    ),
    Mutant(
        name="units-are-ignored",
        guarantee="rule 72",
        file=_ROOM + "keys.py",
        old="if self._unit is not None:",
        new="if self._unit == 1:",
        tests=("test_examples_of_one_unit_are_in_one_group",),
    ),
)
