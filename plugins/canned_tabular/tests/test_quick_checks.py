"""Tests of `passes` of every rule: an array that passes has no fault, and the model receives it unchanged."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_canned_tabular.host.number_rule import NumberRule
from estimator_canned_tabular.host.word_rule import WordRule
from estimator_heads.data.class_labels import ClassLabels
from estimator_heads.data.number_labels import NumberLabels
from estimator_heads.data.weights import ExampleWeights

RULES = {
    "classes": ClassLabels(n_classes=3),
    "soft classes": ClassLabels(n_classes=3, soft=True),
    "named classes": ClassLabels(n_classes=2, names=("0", "1")),
    "numbers": NumberLabels(),
    "counts": NumberLabels(low=0),
    "shares": NumberLabels(low=0, high=1),
    "weights": ExampleWeights(),
    "column": NumberRule(key="x"),
    "wide column": NumberRule(key="x", width=2),
    "filled column": NumberRule(key="x", missing="mean"),
    "words": WordRule(key="x", texts=True, integers=False),
    "ids": WordRule(key="x", texts=False, integers=True),
}
ODD = [math.nan, math.inf, -math.inf, -1.0, -0.0, 0.5, 1.0, 2.0, 3.0, 1e200, 127.0]
DTYPES = ["int8", "int32", "int64", "uint8", "bool", "float16", "float32", "float64", "U3", "S3", "object"]
FORMS = ["flat", "column", "pairs", "every second", "transposed"]


def array(values: list[float], dtype: str, form: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        whole = [0.0 if dtype[0] in "iu" and not math.isfinite(value) else value for value in values]
        made = np.array(whole).astype(dtype)
    if form == "column":
        return made[:, None]
    if form == "pairs":
        return np.stack([made, made], axis=1)
    if form == "every second":
        return np.repeat(made, 2)[::2]
    return np.stack([made, made[::-1]]).T if form == "transposed" else made


@settings(deadline=None, max_examples=500)
@given(
    name=st.sampled_from(sorted(RULES)),
    values=st.lists(st.sampled_from(ODD), max_size=5),
    dtype=st.sampled_from(DTYPES),
    form=st.sampled_from(FORMS),
    known=st.sampled_from([None, ["7", "8", "9"], [0.5]]),
)
def test_what_passes_has_no_fault_and_stays(name, values, dtype, form, known):
    rule, given_array = RULES[name], array(values, dtype, form)
    if rule.passes(given_array, known):
        assert rule.fault(given_array, known) is None
        assert rule.convert(given_array, known) is given_array


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_missing_value_among_integers_is_named(texts, missing):
    """The integer before it was refused, although the message said that the column takes integers."""
    fault = WordRule(key="x", texts=texts, integers=True).fault(np.array([1, missing, 3], object), None)
    assert fault is not None
    assert (fault.row, fault.problem) == (1, "is missing among integers")


@pytest.mark.parametrize("name", sorted(RULES))
def test_batches_of_the_usual_kind_pass(name):
    usual = {"classes": "int32", "words": "U3", "ids": "int32", "soft classes": "int64"}
    form = "pairs" if name == "wide column" else "flat"
    passed = RULES[name].passes(array([0.0, 1.0, 0.0], usual.get(name, "float32"), form), None)
    assert passed is (name != "named classes")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, 3.0])
@pytest.mark.parametrize("row", [0, 4])
def test_one_bad_value_does_not_pass(bad, row):
    values = [0.0, 1.0, 1.0, 0.0, 1.0]
    values[row] = bad
    assert not NumberLabels(low=0, high=1).passes(np.array(values, np.float32), None)
    if math.isfinite(bad):
        assert not ClassLabels(n_classes=3).passes(np.array(values, np.int32), None)
    else:
        assert not NumberRule(key="x").passes(np.array(values, np.float32), None)


@pytest.mark.parametrize(("value", "told"), [(10**400, np.inf), (-(10**400), -np.inf)], ids=["large", "small"])
def test_an_integer_beyond_any_float_is_a_fault_of_its_row(value, told):
    fault = NumberRule(key="x").fault(np.array([1, value], object), None)
    assert fault is not None
    assert (fault.row, fault.value, fault.problem) == (1, told, "is not finite")
