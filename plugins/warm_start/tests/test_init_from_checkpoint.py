"""Tests of `init_from_checkpoint` in model_fn: map, mismatches, and time of reading (trap 32, fault 13)."""

import functools

import jax
import numpy as np
import pytest

from estimator_core.errors import ArgumentTypeError, CheckpointNotFoundError, ModelFnError, VariableError
from estimator_core.model import get_variable, trainable_variables, variable_scope
from estimator_warm_start import get_assignment_map_from_checkpoint as map_of
from estimator_warm_start import init_from_checkpoint as init_from

OLD = {
    "bert/kernel": np.full((3, 2), 1.0, np.float32),
    "bert/bias": np.full((2,), 2.0, np.float32),
    "kernel": np.full((3, 2), 3.0, np.float32),
    "bias": np.full((2,), 4.0, np.float32),
}


def reader(path):
    return {"old": OLD}[path]


init_from_checkpoint = functools.partial(init_from, reader=reader)
get_assignment_map_from_checkpoint = functools.partial(map_of, reader=reader)


def layer(name, x):
    with variable_scope(name):
        return x @ get_variable("kernel", (3, 2)) + get_variable("bias", (2,))


def model_with(request):
    def model(x):
        y = layer("text", x) + layer("head", x)
        model.report = request()
        return y

    return model


def loaded(found):
    """Returns the requested values, by path. A later request overrides an earlier one."""
    given = {}
    for request in found.requests:
        given |= request.initial_values(found.specs, key=jax.random.key)
    return {path: one.value for path, one in given.items()}


def test_a_scope_leaves_out_the_records_of_a_model(discover):
    """The earlier model may have none, or describe other data."""

    def model(x):
        get_variable("data_contract", initializer=np.zeros(2, np.uint8), trainable=False)
        y = layer("bert", x)
        init_from_checkpoint("old", {"/": "/"})
        return y

    assert set(loaded(discover(model))) == {"bert/kernel", "bert/bias"}


@pytest.mark.parametrize(
    ("assignments", "expected"),
    [
        ({"bert/": "text/"}, {"text/kernel": 1, "text/bias": 2}),
        ({"/": "text/"}, {"text/kernel": 3, "text/bias": 4}),
        ({"bert/kernel": "text/kernel"}, {"text/kernel": 1}),
        ({"bert/kernel": ["text/kernel", "head/kernel"]}, {"text/kernel": 1, "head/kernel": 1}),
        (
            [("bert/", "text/"), ("bert/", "head/")],
            {"text/kernel": 1, "text/bias": 2, "head/kernel": 1, "head/bias": 2},
        ),
        (lambda: {"kernel": trainable_variables()[2]}, {"head/kernel": 3}),
    ],
)
def test_forms_of_the_map(discover, assignments, expected):
    run = discover(
        model_with(lambda: init_from_checkpoint("old", assignments() if callable(assignments) else assignments))
    )
    assert {path: float(value.flat[0]) for path, value in loaded(run).items()} == expected
    assert set(run.model.report.loaded) == set(expected)


def test_the_root_of_both(discover):
    def model(x):
        x @ get_variable("kernel", (3, 2))
        init_from_checkpoint("old", {"/": "/"})

    run = discover(model)
    assert run.requests[0].assignments == (("kernel", "kernel"),)


@pytest.mark.parametrize(
    ("assignments", "error", "message"),
    [
        ({"/": "zz/"}, VariableError, "no variable is declared under 'zz/' at this point"),
        ({"bert/kernel": "text/kernle"}, VariableError, "'text/kernle' is not declared.*Did you mean 'text/kernel'"),
        ({"bert/kernle": "text/kernel"}, VariableError, "Tensor 'bert/kernle'.*not found.*Did you mean 'bert/kernel'"),
        ({"bert/": "text/kernel"}, VariableError, "only one of them ends in '/'"),
        (
            {"bert/kernel": "text/bias"},
            VariableError,
            r"Shape of variable 'text/bias' \(\[2\]\).*'bert/kernel' \(\[3, 2\]\)",
        ),
        ({"bert/kernel": 3}, ArgumentTypeError, "is of the wrong type"),
        (3, ArgumentTypeError, "Give a dict or a list of pairs"),
    ],
)
def test_what_does_not_fit_is_refused_at_once(discover, assignments, error, message):
    with pytest.raises(error, match=message):
        discover(model_with(lambda: init_from_checkpoint("old", assignments)))


def test_a_checkpoint_that_is_gone_is_no_error_where_nothing_is_initialised(discover):
    def refuse(path):
        raise CheckpointNotFoundError(path)

    def request():
        mapping, _ = map_of(trainable_variables(), "gone", reader=refuse)
        return init_from("gone", mapping, reader=refuse)

    run = discover(model_with(request), fresh=False)
    run.step({path: np.zeros(spec.shape, spec.dtype) for path, spec in run.specs.items()})
    assert run.model.report.loaded == tuple(run.specs)
    with pytest.raises(CheckpointNotFoundError):
        discover(model_with(request))


def test_the_assignment_map_is_the_same_in_every_trace(discover):
    """A model_fn that freezes loaded variables must train its fresh layer, whichever trace is compiled."""
    maps = []

    def request():
        mapping, names = map_of(trainable_variables(), "old", reader=lambda path: {"text/kernel": OLD["bert/kernel"]})
        maps.append((mapping, names))
        return init_from("old", mapping, reader=lambda path: {"text/kernel": OLD["bert/kernel"]})

    discover(model_with(request))
    run = discover(model_with(request), fresh=False)
    run.step({path: np.zeros(spec.shape, spec.dtype) for path, spec in run.specs.items()})
    assert maps == [({"text/kernel": "text/kernel"}, {"text/kernel": 1})] * 3


def test_the_request_of_a_compiled_step_does_not_read(discover):
    asked = []

    def read(path):
        asked.append(path)
        return OLD

    run = discover(model_with(lambda: init_from("old", {"bert/": "text/"}, reader=read)))
    before = list(asked)
    run.step({path: np.zeros(spec.shape, spec.dtype) for path, spec in run.specs.items()})
    assert asked == before == ["old"]
    assert run.model.report.loaded == ("text/kernel", "text/bias")


def test_the_map_of_what_a_checkpoint_has(discover):
    found = {}

    def model(x):
        get_variable("kernel", (3, 2))
        get_variable("new", (2,))
        found["map"] = get_assignment_map_from_checkpoint(trainable_variables(), "old")

    discover(model)
    assert found["map"] == ({"kernel": "kernel"}, {"kernel": 1})

    def nothing_common(x):
        get_variable("other", (3, 2))
        get_assignment_map_from_checkpoint(trainable_variables(), "old")

    with pytest.raises(VariableError, match="none of the 1 variables, such as 'other'"):
        discover(nothing_common)


def test_outside_of_model_fn():
    with pytest.raises(ModelFnError):
        init_from_checkpoint("old", {})
    with pytest.raises(ModelFnError):
        get_assignment_map_from_checkpoint([], "old")


def test_values_are_what_the_model_then_computes_with(discover, batch):
    run = discover(model_with(lambda: init_from_checkpoint("old", {"bert/": "text/", "/": "head/"})))
    np.testing.assert_allclose(run.step(loaded(run)), batch @ np.full((3, 2), 4.0) + 6, rtol=1e-5, atol=1e-5)


def test_a_checkpoint_of_another_kind_is_read_by_the_reader_given(discover):
    foreign = {"kernel": np.full((3, 2), 7.0, np.float32), "elsewhere": np.zeros(1, np.float32)}
    asked = []

    def read(path):
        asked.append(path)
        return foreign

    def request():
        with pytest.raises(VariableError, match="has none of the 4 variables"):
            map_of(trainable_variables(), "foreign", reader=read)
        return init_from("foreign", {"kernel": "text/kernel"}, reader=read)

    run = discover(model_with(request))
    values = loaded(run)
    assert values.keys() == {"text/kernel"}
    np.testing.assert_array_equal(values["text/kernel"], foreign["kernel"])
    assert run.model.report.loaded == ("text/kernel",)
    assert asked == ["foreign"] * 3
