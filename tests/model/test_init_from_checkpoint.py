"""`init_from_checkpoint` in model_fn, and the order of first values (trap 32, faults 13 and 14)."""

import jax
import numpy as np
import pytest

from estimator_core._model.access import get_variable, trainable_variables, variable_scope
from estimator_core._model.init_from_checkpoint import get_assignment_map_from_checkpoint, init_from_checkpoint
from estimator_core._model.initial_values import replaced_values
from estimator_core._model.warm_start import WarmStartSettings
from estimator_core.errors import ArgumentTypeError, ModelFnError, VariableError

OLD = {
    "bert/kernel": np.full((3, 2), 1.0, np.float32),
    "bert/bias": np.full((2,), 2.0, np.float32),
    "kernel": np.full((3, 2), 3.0, np.float32),
    "bias": np.full((2,), 4.0, np.float32),
}


def reader(path):
    return {"old": OLD}[path]


def layer(name, x):
    with variable_scope(name):
        return x @ get_variable("kernel", (3, 2)) + get_variable("bias", (2,))


def model_with(request):
    def model(x):
        y = layer("text", x) + layer("head", x)
        model.report = request()
        return y

    return model


def discovered(runner, batch, request):
    run = runner(model_with(request))
    run.discover(batch, reader=reader)
    return run


def loaded(run, **options):
    values = run.initialize().variables
    return replaced_values(values, run.specs, reader=reader, seed=0, requests=run.scope.requests, **options)


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
def test_forms_of_the_map(runner, batch, assignments, expected):
    run = discovered(
        runner, batch, lambda: init_from_checkpoint("old", assignments() if callable(assignments) else assignments)
    )
    values, report = loaded(run)
    assert {path: float(value.flat[0]) for path, value in values.items()} == expected
    assert set(report.loaded) == set(run.model.report.loaded) == set(expected)


def test_the_root_of_both(runner, batch):
    def model(x):
        x @ get_variable("kernel", (3, 2))
        init_from_checkpoint("old", {"/": "/"})

    run = runner(model)
    run.discover(batch, reader=reader)
    assert run.scope.requests[0].assignments == (("kernel", "kernel"),)


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
def test_what_does_not_fit_is_refused_at_once(runner, batch, assignments, error, message):
    with pytest.raises(error, match=message):
        discovered(runner, batch, lambda: init_from_checkpoint("old", assignments))


def test_nothing_is_read_where_nothing_is_initialised(runner, batch):
    def refuse(path):
        raise AssertionError(path)

    def request():
        tvars = trainable_variables()
        mapping, _ = get_assignment_map_from_checkpoint(tvars, "gone")
        return init_from_checkpoint("gone", mapping)

    run = runner(model_with(request))
    run.discover(batch)
    run.initialize()
    run.step(batch)
    with pytest.raises(AssertionError):
        runner(model_with(request)).discover(batch, reader=refuse)


def test_the_request_of_a_compiled_step_does_not_read(runner, batch):
    run = discovered(runner, batch, lambda: init_from_checkpoint("old", {"bert/": "text/"}))
    run.initialize()
    run.step(batch)
    assert run.model.report.loaded == ("text/kernel", "text/bias")


def test_the_map_of_what_a_checkpoint_has(runner, batch):
    found = {}

    def model(x):
        get_variable("kernel", (3, 2))
        get_variable("new", (2,))
        found["map"] = get_assignment_map_from_checkpoint(trainable_variables(), "old")

    runner(model).discover(batch, reader=reader)
    assert found["map"] == ({"kernel": "kernel"}, {"kernel": 1})

    def nothing_common(x):
        get_variable("other", (3, 2))
        get_assignment_map_from_checkpoint(trainable_variables(), "old")

    with pytest.raises(VariableError, match="none of the 1 variables, such as 'other'"):
        runner(nothing_common).discover(batch, reader=reader)


def test_later_sources_win(runner, batch):
    run = discovered(runner, batch, lambda: init_from_checkpoint("old", {"bert/": "text/"}))
    warm = WarmStartSettings("warm")
    tensors = {path: np.full(spec.shape, 10.0, np.float32) for path, spec in run.specs.items()}
    seen = {}

    def init_fn(values):
        seen.update(values)
        return {"text/bias": values["text/bias"] + 100}

    values, report = replaced_values(
        run.initialize().variables,
        run.specs,
        reader=lambda path: {"old": OLD, "warm": tensors}[path],
        seed=0,
        settings=warm,
        requests=run.scope.requests,
        init_fn=init_fn,
    )
    assert {path: float(value.flat[0]) for path, value in values.items()} == {
        "text/kernel": 1,
        "text/bias": 102,
        "head/kernel": 10,
        "head/bias": 10,
    }
    assert {row.variable: row.source for row in report.rows} == {
        "text/kernel": "old",
        "text/bias": "Scaffold.init_fn",
        "head/kernel": "warm",
        "head/bias": "warm",
    }
    assert set(seen) == set(run.specs)
    seen["text/kernel"][:] = -1
    assert values["text/kernel"].min() == 1


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "returned NoneType"),
        ({"text/kernle": np.zeros((3, 2))}, "'text/kernle', which is no variable.*Did you mean 'text/kernel'"),
        ({"text/bias": np.zeros(3)}, r"Shape of variable 'text/bias' \(\[2\]\)"),
    ],
)
def test_an_init_fn_that_returns_something_else(runner, batch, returned, message):
    run = runner(lambda x: layer("text", x)).start(batch)
    with pytest.raises(VariableError, match=message):
        replaced_values(run.variables, run.specs, reader=reader, seed=0, init_fn=lambda values: returned)


def test_outside_of_model_fn():
    with pytest.raises(ModelFnError):
        init_from_checkpoint("old", {})
    with pytest.raises(ModelFnError):
        get_assignment_map_from_checkpoint([], "old")


def test_values_are_what_the_model_then_computes_with(runner, batch):
    run = discovered(runner, batch, lambda: init_from_checkpoint("old", {"bert/": "text/", "/": "head/"}))
    values, _ = loaded(run)
    run.variables |= {path: jax.numpy.asarray(value) for path, value in values.items()}
    np.testing.assert_allclose(run.step(batch), batch @ np.full((3, 2), 4.0) + 6, rtol=1e-5, atol=1e-5)


def test_a_checkpoint_of_another_kind_is_read_by_the_reader_given(runner, batch):
    foreign = {"kernel": np.full((3, 2), 7.0, np.float32), "elsewhere": np.zeros(1, np.float32)}
    asked = []

    def read(path):
        asked.append(path)
        return foreign

    def request():
        with pytest.raises(VariableError, match="has none of the 4 variables"):
            get_assignment_map_from_checkpoint(trainable_variables(), "foreign", reader=read)
        return init_from_checkpoint("foreign", {"kernel": "text/kernel"}, reader=read)

    values, report = loaded(discovered(runner, batch, request))
    assert values.keys() == {"text/kernel"}
    np.testing.assert_array_equal(values["text/kernel"], foreign["kernel"])
    assert report.loaded == ("text/kernel",)
    assert asked == ["foreign"] * 3
