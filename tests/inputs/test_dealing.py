"""Tests of global batches that are distributed over processes: together they equal the batches of one process, also
after a resume.
"""

import itertools
import json

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_core._inputs import InputContext, open_input
from estimator_core._inputs.arrays import numpy_input_fn
from estimator_core._inputs.input_fn import from_iterable
from estimator_core._loop.resuming import position_of
from estimator_core.errors import ArgumentError

plans = st.fixed_dictionaries(
    {
        "n": st.integers(1, 40),
        "num_epochs": st.integers(1, 2),
        "shuffle": st.booleans(),
        "ragged": st.sampled_from(["exact", "pad"]),
        "drop_remainder": st.booleans(),
    }
)


def contexts(processes, each=1, *, interleaved=False):
    """Returns the contexts of processes with `each` devices. With `interleaved`, the first process holds part 0 and
    part `processes`.
    """
    count = processes * each
    parts = [
        tuple(range(p, count, processes)) if interleaved else tuple(range(p * each, (p + 1) * each))
        for p in range(processes)
    ]
    return [
        InputContext(num_input_pipelines=processes, input_pipeline_id=p, num_replicas_in_sync=count, parts=parts[p])
        for p in range(processes)
    ]


def array_input(plan, batch_size, *, marked=False):
    x = {"number": np.arange(plan["n"]), "name": np.array([f"n{i}" for i in range(plan["n"])])}
    if marked:
        x["is_real_example"] = (np.arange(plan["n"]) % 3 != 1).astype(np.float32)
    options = {name: value for name, value in plan.items() if name != "n"}
    return numpy_input_fn(x, np.arange(plan["n"]) * 10, batch_size, seed=5, **options)


def whole_batches(*args):
    """Yields global batches from a plain generator, which each process draws completely."""
    yield from array_input(*args)()


def put_together(processes, open_one):
    """Yields the batches of all processes combined, with each row in the place it has on the devices."""
    for batches in zip(*[open_one(context) for context in processes], strict=True):
        (total,) = {batch.total for batch in batches}
        rows = np.concatenate([context.rows(total) for context in processes])
        _, first = np.unique(rows, return_index=True)
        assert len(first) == total

        def joined(*leaves, first=first):
            return np.concatenate(leaves)[first]

        trees = [(b.features, b.labels, dict(b.host), b.weights) for b in batches]
        ((size, position),) = {(b.size, json.dumps(b.position.to_json())) for b in batches}
        yield jax.tree.map(joined, *trees), size, json.loads(position)


def told(batches):
    for batch in batches:
        yield (batch.features, batch.labels, dict(batch.host), batch.weights), batch.size, batch.position.to_json()


def assert_equal(found, expected):
    for (tree, size, position), (other, other_size, other_position) in itertools.zip_longest(found, expected):
        jax.tree.map(np.testing.assert_array_equal, tree, other)
        assert (size, position) == (other_size, other_position)


shapes = st.tuples(st.integers(2, 4), st.integers(1, 3), st.booleans())


@settings(deadline=None)
@given(plan=plans, shape=shapes, batch_size=st.integers(1, 6), marked=st.booleans())
def test_any_number_of_processes_has_the_batches_of_one(plan, shape, batch_size, marked):
    processes, each, interleaved = shape
    several = contexts(processes, each, interleaved=interleaved)

    def open_one(context):
        return open_input(array_input(plan, batch_size, marked=marked), mode="train", input_context=context)

    one = open_input(array_input(plan, batch_size * processes, marked=marked), mode="train")
    assert_equal(put_together(several, open_one), told(one))


@settings(deadline=None)
@given(plan=plans, shape=shapes, batch_size=st.integers(1, 6))
def test_an_input_that_is_whole_in_every_process_is_dealt_out(plan, shape, batch_size):
    processes, each, interleaved = shape
    plan = {**plan, "ragged": "exact"}
    several = contexts(processes, each, interleaved=interleaved)

    def whole(ragged):
        return from_iterable(lambda: whole_batches(plan, batch_size), whole=True, ragged=ragged, batch_size=batch_size)

    for ragged in ("exact", "pad"):
        one = open_input(whole(ragged), mode="train")
        found = put_together(several, lambda c: open_input(whole(ragged), mode="train", input_context=c))  # noqa: B023
        assert_equal(found, told(one))


def test_what_is_whole_is_not_divided_a_second_time():
    several = contexts(2)
    divided = from_iterable(numpy_input_fn(np.arange(8), batch_size=4, shuffle=False), whole=True)
    parts = [[b.features.tolist() for b in open_input(divided, mode="train", input_context=c)] for c in several]
    assert parts == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]


@settings(deadline=None)
@given(
    plan=plans, before=st.integers(1, 4), after=st.integers(1, 4), sizes=st.tuples(st.integers(1, 4), st.integers(1, 4))
)
def test_another_number_of_processes_goes_on_at_the_same_example(plan, before, after, sizes):
    plan = {**plan, "ragged": "exact", "num_epochs": 3, "drop_remainder": False}

    def read(count, size, position=None, most=None):
        found = []
        sources = [
            open_input(array_input(plan, size), mode="train", input_context=c, position=None if position is None else p)
            for c, p in [(c, None if position is None else position_of(position, c)) for c in contexts(count)]
        ]
        for batches in itertools.islice(zip(*sources, strict=True), most):
            rows = np.concatenate([c.rows(b.total or b.size) for c, b in zip(contexts(count), batches, strict=True)])
            numbers = np.concatenate([b.features["number"] for b in batches])
            found.extend(numbers[np.unique(rows, return_index=True)[1]].tolist())
            last = [b.position.to_json() for b in batches]
        return found, {**last[0], "parts": last} if count > 1 else last[0]

    everything, _ = read(1, 7)
    begun, position = read(before, sizes[0], most=2)
    if len(begun) < len(everything):
        rest, _ = read(after, sizes[1], position=position)
        assert begun + rest == everything


def test_an_input_that_divides_itself_starts_again_in_another_number_of_processes():
    def numbers(input_context):
        return [{"x": np.arange(4) + 4 * p + input_context.input_pipeline_id} for p in range(5)]

    def opened(context, position=None):
        source = open_input(numbers, mode="train", input_context=context, position=position)
        return source, next(source)

    begun = [opened(context)[1].position.to_json() for context in contexts(2)]
    saved = {**begun[0], "parts": begun}
    for context in contexts(2):
        source, batch = opened(context, position_of(saved, context))
        assert source.restored.startswith("Input continues after 4 examples")
        assert batch.features["x"][0] == 4 + context.input_pipeline_id
    for context in (*contexts(3), InputContext()):
        source, batch = opened(context, position_of(saved, context))
        assert source.restored.startswith("Input starts again: process was 0/2 and is ")
        assert batch.features["x"][0] == context.input_pipeline_id


@pytest.mark.parametrize("parts", [(2,), (1, 0), (0, 0), (-1,)])
def test_parts_that_cannot_be_are_refused(parts):
    with pytest.raises(ArgumentError, match="parts must be ascending numbers from 0 to 1"):
        InputContext(num_input_pipelines=2, num_replicas_in_sync=2, parts=parts)
