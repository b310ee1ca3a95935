"""Tests of calls of input_fn: it receives the arguments that its signature names, and other signatures are refused
before it runs.
"""

import functools

import numpy as np
import pytest

from estimator_core._inputs import InputContext, open_input
from estimator_core._inputs.arrays import numpy_input_fn
from estimator_core._inputs.input_fn import from_iterable
from estimator_core._inputs.transforms import with_transforms
from estimator_core.errors import ArgumentTypeError, InputError

BATCHES = [(np.zeros((2, 1), np.float32), np.zeros(2, np.float32))]


def received(input_fn):
    context = InputContext(num_input_pipelines=2, input_pipeline_id=1)
    source = open_input(input_fn, mode="train", params={"p": 1}, config="the config", input_context=context)
    next(source)
    source.close()


@pytest.mark.parametrize("names", [[], ["mode"], ["params", "mode"], ["config"], ["input_context", "config", "params"]])
def test_any_subset_is_passed_by_name(names):
    expected = {"mode": "train", "params": {"p": 1}, "config": "the config"}
    seen = {}

    def record(**values):
        seen.update(values)
        return BATCHES

    pairs = ", ".join(f"{name}={name}" for name in names)
    received(eval(f"lambda {', '.join(names)}: record({pairs})", {"record": record}))
    assert list(seen) == names
    assert {name: value for name, value in seen.items() if name != "input_context"} == {
        name: expected[name] for name in names if name != "input_context"
    }
    if "input_context" in names:
        assert seen["input_context"].input_pipeline_id == 1


def test_methods_partials_and_objects_are_called_too():
    class Holder:
        def method(self, mode):
            assert mode == "train"
            return BATCHES

        def __call__(self, params):
            assert params == {"p": 1}
            return BATCHES

    received(Holder().method)
    received(Holder())
    received(functools.partial(lambda path, mode: BATCHES, "a path"))
    received(lambda extra=3, *args, **kwargs: BATCHES)


def test_the_default_context_is_the_only_shard():
    seen = []
    source = open_input(lambda input_context: seen.append(input_context) or BATCHES, mode="train")
    next(source)
    assert (seen[0].num_input_pipelines, seen[0].input_pipeline_id) == (1, 0)


@pytest.mark.parametrize("bad", [1, None, BATCHES, "input"])
def test_what_is_not_callable_is_refused(bad):
    with pytest.raises(ArgumentTypeError, match="`input_fn` must be callable, given: "):
        open_input(bad, mode="train")


@pytest.mark.parametrize("bad", [lambda features: 0, lambda mode, foo: 0, lambda mode, /: 0])
def test_arguments_that_cannot_be_filled_are_refused(bad):
    with pytest.raises(
        InputError, match=r"has following not expected args: \['(features|foo|mode)'\].*functools.partial"
    ):
        open_input(bad, mode="train")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "returned None"),
        (7, "returned 7"),
        ("file.csv", "returned 'file.csv'"),
        (object(), "cannot be iterated"),
        (np.zeros(3), "returned a ndarray"),
        ({"x": np.zeros(3)}, "returned a dict"),
        ((np.zeros((2, 3)), np.zeros(2)), "would be read as 2 batches"),
        (({"x": np.zeros((2, 3))}, np.zeros(2)), "would be read as 2 batches"),
        ([np.zeros((2, 3)), np.zeros(2)], "bare arrays among them"),
        ((np.zeros(2), np.zeros(2), np.zeros(2)), r"should return \(features, labels\) as a len 2 tuple"),
    ],
)
def test_a_result_that_is_no_stream_of_batches_is_refused_with_the_cure(result, message):
    with pytest.raises(InputError, match=rf"(?s){message}.*numpy_input_fn"):
        open_input(lambda: result, mode="train")


def test_a_function_that_makes_an_input_is_called_and_an_endless_chain_refused():
    source = open_input(lambda: lambda params: [BATCHES[0]] * params, mode="train", params=3)
    assert len(list(source)) == 3

    def forever():
        return forever

    with pytest.raises(InputError, match="returned a function that returns a function"):
        open_input(forever, mode="train")


def test_what_input_fn_raises_passes_through():
    with pytest.raises(ZeroDivisionError):
        open_input(lambda: 1 / 0, mode="train")


def test_predict_drops_labels():
    assert next(open_input(lambda: BATCHES, mode="infer")).labels is None
    assert next(open_input(lambda: BATCHES, mode="eval")).labels is not None


def sharded_labels(input_fn):
    context = InputContext(num_input_pipelines=2, input_pipeline_id=1)
    return [batch.labels.tolist() for batch in open_input(input_fn, mode="train", input_context=context)]


def test_an_input_is_sharded_once_however_it_is_nested():
    x, y = np.zeros((8, 1)), np.arange(8)

    def array_input(rows=slice(None)):
        return numpy_input_fn(x[rows], y[rows], batch_size=8, shuffle=False)

    def by_hand(input_context):
        return array_input(slice(input_context.input_pipeline_id, None, input_context.num_input_pipelines))

    dealt, divided = [[4, 5, 6, 7]], [[1, 3, 5, 7]]
    assert sharded_labels(array_input()) == dealt
    assert sharded_labels(lambda: array_input()) == dealt
    assert sharded_labels(by_hand) == divided
    assert sharded_labels(lambda: by_hand) == divided
    assert sharded_labels(from_iterable(array_input())) == dealt
    assert sharded_labels(from_iterable(by_hand)) == divided
    assert sharded_labels(with_transforms(lambda: by_hand)) == divided
