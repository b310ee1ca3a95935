"""Tests of `HParams`: it behaves like tf.contrib.training.HParams, with more informative errors."""

import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_experiment import HParams


@pytest.fixture
def hparams() -> HParams:
    return HParams(a=1, b=[2, 3], c=[1.0, 2.0], flag=True, name="x", anything=None, rate=0.1)


def test_attributes_and_types(hparams: HParams):
    assert (hparams.a, hparams.b, hparams.name) == (1, [2, 3], "x")
    assert hparams.get_type("b") == (int, True)
    assert hparams.get_type("rate") == (float, False)
    assert "a" in hparams
    assert "z" not in hparams
    assert (hparams["a"], list(hparams)) == (1, list(hparams.values()))
    with pytest.raises(KeyError, match="z"):
        hparams["z"]
    assert dict(hparams) == {**hparams} == hparams.values()
    assert dict(HParams(ab=1, cd=2)) == {"ab": 1, "cd": 2}, "two letters are not a name and its value"
    assert list(hparams.values()) == ["a", "b", "c", "flag", "name", "anything", "rate"]


def test_setting_an_attribute_keeps_its_type(hparams: HParams):
    hparams.rate = 1
    assert hparams.rate == 1.0
    assert type(hparams.rate) is float
    with pytest.raises(ValueError, match=r"Could not cast hyperparameter 'a' of type 'int' from value 1\.5"):
        hparams.a = 1.5
    with pytest.raises(ValueError, match="Did you mean 'rate'"):
        hparams.rat = 2.0


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("a=5", "a", 5),
        ("a=-5,name=y", "a", -5),
        ("b=[7, 8,9]", "b", [7, 8, 9]),
        ("b=[7 8]", "b", [7, 8]),
        ("c[0]=4", "c", [4.0, 2.0]),
        ("c[0]=4,c[1]=5", "c", [4.0, 5.0]),
        ("rate=1e-3", "rate", 0.001),
        ("rate=3", "rate", 3.0),
        ("name=two words", "name", "two words"),
        ("name=", "name", ""),
        ("anything=text", "anything", "text"),
        ("anything=3", "anything", 3),
        *[(f"flag={text}", "flag", True) for text in ("true", "True", "1")],
        *[(f"flag={text}", "flag", False) for text in ("false", "False", "0")],
    ],
)
def test_parse(hparams: HParams, text: str, name: str, value: object):
    assert hparams.parse(text) is hparams
    assert getattr(hparams, name) == value
    assert type(getattr(hparams, name)) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("z=1", "Unknown hyperparameter type for z"),
        ("nam=1", "Did you mean 'name'"),
        ("a=1.5", "Could not parse hparam 'a' of type 'int' with value '1.5'"),
        ("a=", "Could not parse hparam 'a'"),
        ("a=true", "Could not parse hparam 'a'"),
        ("flag=yes", "Could not parse hparam 'flag' of type 'bool'"),
        ("flag=2", "Could not parse hparam 'flag'"),
        ("b=3", "Must pass a list for multi-valued parameter: b"),
        ("a=[3]", "Must not pass a list for single-valued parameter: a"),
        ("b=[]", "Multi-valued hyperparameters cannot be empty: b"),
        ("b=[1,x]", "Could not parse hparam 'b'"),
        ("a=1,a=2", "Multiple assignments to variable 'a'"),
        ("c[0]=1,c[0]=2", r"Multiple assignments to variable 'c\[0\]'"),
        ("c=[1,2],c[0]=2", "Multiple assignments"),
        ("c[0]=2,c=[1,2]", "Multiple assignments"),
        ("c[2]=1", "out of range"),
        ("a[0]=1", "needs a list-valued hyperparameter"),
        ("a", "Malformed hyperparameter value"),
        ("a=1;name=2", "Could not parse hparam 'a'"),
        ("=1", "Malformed"),
        ("b=[1,2", "Malformed"),
    ],
)
def test_a_bad_text_changes_nothing(hparams: HParams, text: str, message: str):
    before = copy.deepcopy(hparams)
    with pytest.raises(ValueError, match=message):
        hparams.parse("rate=9.0," + text)
    assert hparams == before


@pytest.mark.parametrize("name", ["parse", "values", "to_json", "get", "_values", "__init__", "add_hparam"])
def test_reserved_names(name: str):
    with pytest.raises(ValueError, match=f"Hyperparameter name is reserved: {name}"):
        HParams(**{name: 1})


def test_a_name_is_added_once(hparams: HParams):
    hparams.add_hparam("new", [1])
    assert hparams.new == [1]
    with pytest.raises(ValueError, match="Hyperparameter name is reserved: new"):
        hparams.add_hparam("new", 2)
    hparams.del_hparam("new")
    assert "new" not in hparams
    with pytest.raises(AttributeError, match="HParams has no hyperparameter 'new'"):
        _ = hparams.new
    hparams.add_hparam("new", "other type")
    assert hparams.new == "other type"


def test_empty_list_is_refused():
    with pytest.raises(ValueError, match="Multi-valued hyperparameters cannot be empty: layers"):
        HParams(layers=[])


@pytest.mark.parametrize(
    ("name", "value"),
    [("a", 1.0), ("a", True), ("a", "1"), ("flag", 1), ("name", 3), ("rate", "0.1"), ("rate", True), ("a", None)],
)
def test_no_silent_change_of_type(hparams: HParams, name: str, value: object):
    with pytest.raises(ValueError, match=f"Could not cast hyperparameter '{name}'"):
        hparams.set_hparam(name, value)


def test_get(hparams: HParams):
    assert hparams.get("a") == 1
    assert hparams.get("a", 7) == 1
    assert hparams.get("missing") is None
    assert hparams.get("missing", 7) == 7
    with pytest.raises(ValueError, match="Could not cast hyperparameter 'a'"):
        hparams.get("a", 1.5)
    with pytest.raises(ValueError, match="Must pass a list for multi-valued parameter: b"):
        hparams.get("b", 1)


def test_override_from_dict_is_all_or_nothing(hparams: HParams):
    with pytest.raises(ValueError, match="Unknown hyperparameter type for z"):
        hparams.override_from_dict({"a": 5, "z": 1})
    assert hparams.a == 1
    assert hparams.override_from_dict({"a": 5, "b": (4,)}) is hparams
    assert (hparams.a, hparams.b) == (5, [4])


def test_json(hparams: HParams):
    other = HParams(a=0, b=[0], c=[0.0], flag=False, name="", anything=None, rate=0.0)
    assert other.parse_json(hparams.to_json()) == hparams
    assert list(json.loads(hparams.to_json(sort_keys=True))) == sorted(hparams.values())
    with pytest.raises(ValueError, match="invalid JSON"):
        hparams.parse_json("{")
    with pytest.raises(ValueError, match="expected a JSON object"):
        hparams.parse_json("[1]")
    with pytest.raises(ValueError, match="Could not cast hyperparameter 'a'"):
        hparams.parse_json('{"a": 1.5}')


def test_json_leaves_functions_out_and_writes_numpy_values():
    hparams = HParams(scale=np.float32(0.5), activation=abs)
    assert json.loads(hparams.to_json()) == {"scale": 0.5}


def test_copies_are_independent(hparams: HParams):
    for duplicate in (copy.deepcopy(hparams), pickle.loads(pickle.dumps(hparams))):
        assert duplicate == hparams
        duplicate.parse("a=9,b[0]=9")
        assert (hparams.a, hparams.b) == (1, [2, 3])
    hparams.values()["b"].append(4)
    assert hparams.b == [2, 3]


@given(
    st.fixed_dictionaries(
        {
            "i": st.integers(),
            "f": st.floats(allow_nan=False),
            "flag": st.booleans(),
            "s": st.text(st.characters(exclude_characters=",[]", exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp"))),
            "many": st.lists(st.integers(), min_size=1),
        }
    )
)
def test_parse_reads_what_is_written(values: dict[str, object]):
    text = ",".join(f"{k}=[{','.join(map(str, v))}]" if isinstance(v, list) else f"{k}={v}" for k, v in values.items())
    hparams = HParams(i=0, f=0.5, flag=False, s="", many=[0])
    assert hparams.parse(text).values() == values
    assert HParams(i=0, f=0.5, flag=False, s="", many=[0]).parse_json(hparams.to_json()) == hparams


def test_equality():
    assert HParams(a=1) == HParams(a=1)
    assert HParams(a=1) != HParams(a=1.0)
    assert HParams(a=1) != {"a": 1}
    assert repr(HParams(a=1, b="x")) == "HParams(a=1, b='x')"
