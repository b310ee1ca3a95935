"""Tests of rules over names that split variables over a mesh. They need no device."""

import jax
import numpy as np
import pytest

from estimator_core._backends.partition import PartitionRules
from estimator_core._backends.placement import place
from estimator_core._model.variables import VariableSpec
from estimator_core.config import FullySharded
from estimator_core.errors import ArgumentError


def variable(name="dense/kernel", shape=(6, 8), sharding=None):
    return VariableSpec(name, shape, np.dtype("float32"), np.zeros(shape), True, sharding)


def split(given, *rules, **sizes):
    made = PartitionRules(sizes=sizes, rules=rules)
    return tuple(made.spec_of(given)), list(made.notes)


def test_rules_decide_by_the_whole_name_and_the_first_wins():
    assert split(variable(), ("dense", ("data",)), ("dense/.*", (None, "data")), data=2) == ((None, "data"), [])
    assert split(variable(), (".*", ("data",)), ("dense/.*", (None, "data")), data=2) == (("data",), [])


def test_what_does_not_divide_stays_whole_and_is_noted():
    found, notes = split(variable(), (".*", ("data", "data2")), data=4, data2=2)
    assert found == (None, "data2")
    assert notes == ["dense/kernel is not split over data: 6 is not divisible by 4."]


def test_annotations_hold_where_no_rule_matches_and_lacking_axes_are_dropped():
    annotated = variable(sharding=("model", "data"))
    assert split(annotated, ("other", ("data",)), data=2) == (
        (None, "data"),
        ["The mesh has no axis 'model', so no array is split over it."],
    )
    assert split(annotated, (".*", ("data",)), data=2) == (("data",), [])


def test_slots_can_be_split_without_their_variable():
    rules = PartitionRules(sizes={"data": 4}, rules=[(".*", FullySharded(slots_only=True))])
    assert tuple(rules.spec_of(variable())) == ()
    assert tuple(rules.spec_of(variable(), slot=True)) == (None, "data")


def test_a_mesh_without_enough_devices_is_refused():
    devices = jax.devices("cpu")[:1]
    with pytest.raises(ArgumentError, match=r"mesh {'data': 2} needs 2 devices, but there are 1\."):
        place(devices, {"data": 2}, ())
