"""Tests of traps 2 and 38: a position taken anywhere continues with exactly the unread examples."""

import itertools
import json
import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_core._inputs import InputContext, InputPosition, open_input
from estimator_core._inputs.arrays import numpy_input_fn
from estimator_core._inputs.prefetch import prefetch
from estimator_core.errors import InputError


def flat(batches):
    return list(itertools.chain.from_iterable(batches))


def through_json(position):
    return InputPosition.from_json(json.loads(json.dumps(position.to_json())))


def labels_of(source, count=None):
    batches = list(source) if count is None else [next(source) for _ in range(count)]
    return [batch.labels.tolist() for batch in batches]


plans = st.fixed_dictionaries(
    {"n": st.integers(1, 25), "num_epochs": st.integers(1, 3), "shuffle": st.booleans(), "seed": st.integers(0, 9)}
)


def array_input(plan, batch_size, **more):
    options = {name: value for name, value in plan.items() if name != "n"} | more
    return numpy_input_fn(np.zeros((plan["n"], 1)), np.arange(plan["n"]), batch_size=batch_size, **options)


@given(
    plan=plans, batch_size=st.integers(1, 9), later=st.integers(1, 9), cut=st.integers(1, 100), depth=st.integers(0, 3)
)
def test_any_cut_continues_with_the_unread_examples_whatever_the_batch_size_and_prefetch(
    plan, batch_size, later, cut, depth
):
    whole = flat(labels_of(open_input(array_input(plan, batch_size), mode="train")))
    source = open_input(array_input(plan, batch_size), mode="train")
    if depth:
        source = prefetch(source, lambda batch: batch, depth=depth)
    read = []
    for _ in range(cut):
        batch = next(source, None)
        if batch is None:
            break
        read += batch.labels.tolist()
        position = batch.position
    source.close()
    assert position.examples == len(read)

    resumed = open_input(array_input(plan, later), mode="train", position=through_json(position))
    batches = list(resumed)
    rest = flat(batch.labels.tolist() for batch in batches)
    if len(read) == len(whole):
        assert "starts again: it ends after" in resumed.restored
        assert rest == whole
        return
    assert read + rest == whole
    assert resumed.restored.startswith(f"Input continues after {len(read)} examples")
    assert batches[0].position.batches == position.batches + 1
    assert batches[-1].position.examples == len(whole)


@given(plan=plans, cuts=st.lists(st.integers(1, 4), max_size=5))
def test_many_interruptions_of_an_endless_input_leave_the_stream_as_it_was(plan, cuts):
    input_fn = array_input(plan, 4, num_epochs=None)
    whole = labels_of(open_input(input_fn, mode="train"), sum(cuts) + 2)
    position, read = None, []
    for count in [*cuts, 2]:
        source = open_input(input_fn, mode="train", position=position)
        for _ in range(count):
            batch = next(source)
            read.append(batch.labels.tolist())
        position = through_json(batch.position)
    assert read == whole


@given(plan=plans, shards=st.integers(2, 3), index=st.integers(0, 1), cut=st.integers(1, 6))
def test_a_shard_continues_in_its_own_shard(plan, shards, index, cut):
    plan = {**plan, "n": plan["n"] + shards, "num_epochs": None}
    context = InputContext(num_input_pipelines=shards, input_pipeline_id=index)
    source = open_input(array_input(plan, 3), mode="train", input_context=context)
    whole = labels_of(source, cut + 3)
    again = open_input(array_input(plan, 3), mode="train", input_context=context)
    labels_of(again, cut)
    resumed = open_input(array_input(plan, 3), mode="train", input_context=context, position=again.position)
    assert labels_of(resumed, 3) == whole[cut:]


BASE = {"n": 10, "num_epochs": None, "shuffle": True, "seed": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 2}, "seed was 1 and is 2"),
        ({"n": 12}, "n was 10 and is 12"),
        ({"shuffle": False}, "shuffle was True and is False"),
    ],
)
def test_a_position_of_another_input_starts_again_naming_the_difference(change, message):
    source = open_input(array_input(BASE, 2), mode="train")
    labels_of(source, 3)
    plan = {**BASE, **change}
    other = open_input(array_input(plan, 2), mode="train", position=source.position)
    assert labels_of(other, 2) == labels_of(open_input(array_input(plan, 2), mode="train"), 2)
    assert other.restored.startswith("Input starts again: ")
    assert message in other.restored


def test_a_position_of_another_kind_starts_again():
    source = open_input(array_input(BASE, 2), mode="train")
    labels_of(source, 3)
    other = open_input(lambda: [{"x": np.zeros((2, 1))}] * 9, mode="train", position=source.position)
    next(other)
    assert other.restored == "Input starts again: it was numpy and is builtins.list."


def test_a_second_run_over_one_epoch_starts_again():
    input_fn = array_input({**BASE, "num_epochs": 1}, 4)
    source = open_input(input_fn, mode="train")
    whole = labels_of(source)
    assert source.position.exhausted
    unseen = source.position._replace(exhausted=False)
    for position, why in ((source.position, "it had ended after 10"), (unseen, "it ends after 10")):
        second = open_input(input_fn, mode="train", position=through_json(position))
        assert labels_of(second) == whole
        assert second.restored == f"Input starts again: {why} examples."


def test_an_ended_input_starts_again_even_where_it_has_grown():
    source = open_input(array_input({**BASE, "num_epochs": 1}, 4), mode="train")
    labels_of(source)
    longer = array_input({**BASE, "num_epochs": 2}, 4)
    again = open_input(longer, mode="train", position=source.position)
    assert labels_of(again) == labels_of(open_input(longer, mode="train"))


def test_nothing_is_drawn_before_the_first_next_and_restored_is_said_after_it():
    drawn = []

    def batches():
        for i in range(5):
            drawn.append(i)
            yield np.full((2, 1), i, np.float32)

    first = open_input(batches, mode="train")
    next(first)
    next(first)
    drawn.clear()
    resumed = open_input(batches, mode="train", position=first.position)
    assert drawn == []
    assert resumed.restored is None
    assert next(resumed).features[0, 0] == 2
    assert "2 batches were drawn and dropped" in resumed.restored


def test_a_position_at_the_start_says_nothing():
    source = open_input(array_input(BASE, 2), mode="train", position=InputPosition("numpy; n=3"))
    next(source)
    assert source.restored is None


def test_an_input_writes_no_log_lines_of_its_own(caplog):
    source = open_input(array_input(BASE, 2), mode="train")
    next(source)
    with caplog.at_level(logging.DEBUG):
        next(open_input(array_input({**BASE, "seed": 5}, 2), mode="train", position=source.position))
    assert caplog.records == []


@pytest.mark.parametrize("bad", [{}, {"fingerprint": "a"}, 3, None, [1]])
def test_what_is_no_position_is_refused(bad):
    with pytest.raises(InputError, match="This is not an input position"):
        InputPosition.from_json(bad)


def test_bytes_travel_through_json():
    position = InputPosition("grain", 4, 1, False, b'{"a": "\xff"}')
    assert through_json(position) == position
