"""Tests of other kinds of input: generators, iterables, iterators, and objects like those of grain, tf.data and
torch.
"""

import json
from collections import UserDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_core._inputs import InputPosition, open_input
from estimator_core._inputs.arrays import numpy_input_fn
from estimator_core._inputs.input_fn import from_iterable
from estimator_core.errors import InputError


def batch(i, rows=2):
    return ({"x": np.full((rows, 1), i, np.float32)}, np.full(rows, i, np.int32))


def count_to(n):
    for i in range(n):
        yield batch(i)


def ids(source, count=None):
    drawn = list(source) if count is None else [next(source) for _ in range(count)]
    return [int(b.features["x"][0, 0]) for b in drawn]


class Loader:
    """Imitates torch's DataLoader: it can be iterated repeatedly and has a length and a batch size."""

    def __init__(self, n, batch_size=2):
        self.n, self.batch_size = n, batch_size

    def __len__(self):
        return self.n

    def __iter__(self):
        return iter([list(batch(i)) for i in range(self.n)])


class Dataset:
    """Imitates a tf.data.Dataset."""

    element_spec = "TensorSpec(shape=(2, 1))"

    def __init__(self, n):
        self.n = n

    def as_numpy_iterator(self):
        return count_to(self.n)


class Sequence:
    """Has only __getitem__ and __len__."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        if index >= 6:
            raise IndexError(index)
        return batch(index)


REPLAYABLE = {
    "generator function": lambda: count_to(6),
    "function of a function": lambda: lambda: count_to(6),
    "list": lambda: [batch(i) for i in range(6)],
    "loader": lambda: Loader(6),
    "dataset": lambda: Dataset(6),
    "sequence": Sequence,
    "declared": from_iterable(lambda: count_to(6)),
    "declared iterable": from_iterable([batch(i) for i in range(6)]),
    "declared dataset": from_iterable(Dataset(6), fresh_arrays=True),
}


@pytest.mark.parametrize("kind", REPLAYABLE)
@pytest.mark.parametrize("cut", [1, 3, 5])
def test_every_kind_is_read_and_continues_by_replay(kind, cut):
    input_fn = REPLAYABLE[kind]
    assert ids(open_input(input_fn, mode="train")) == list(range(6))
    source = open_input(input_fn, mode="train")
    ids(source, cut)
    position = InputPosition.from_json(json.loads(json.dumps(source.position.to_json())))
    resumed = open_input(input_fn, mode="train", position=position)
    assert ids(resumed) == list(range(cut, 6))
    assert f"{cut} batches were drawn and dropped (ec.inputs.from_iterable(..., replay=False)" in resumed.restored
    assert resumed.position == InputPosition(position.fingerprint, 12, 6, exhausted=True)


def test_replay_can_be_switched_off():
    input_fn = from_iterable(lambda: count_to(6), replay=False)
    source = open_input(input_fn, mode="train")
    ids(source, 3)
    resumed = open_input(input_fn, mode="train", position=source.position)
    assert ids(resumed) == list(range(6))
    assert resumed.restored == ("Input starts again: it has no position and replay is switched off; 6 examples repeat.")


@pytest.mark.parametrize("at", [12, 20])
def test_a_replay_that_meets_the_end_starts_again(at):
    source = open_input(lambda: count_to(6), mode="train")
    ids(source, 1)
    resumed = open_input(lambda: count_to(6), mode="train", position=source.position._replace(examples=at))
    assert resumed.restored is None
    position = source.position._replace(examples=at, fingerprint=source.position.fingerprint)
    again = open_input(REPLAYABLE["list"], mode="train", position=position._replace(fingerprint="builtins.list; len=6"))
    assert ids(again) == list(range(6))
    assert again.restored.startswith("Input starts again: it ends after 12 examples")


@given(cut=st.integers(1, 5), before=st.integers(1, 4), after=st.integers(1, 4))
def test_a_replay_after_a_change_of_batch_size_skips_no_example(cut, before, after):
    rows = np.arange(20, dtype=np.float32)

    def batches(size):
        for start in range(0, 20, size):
            yield {"x": rows[start : start + size]}

    def make(params):
        return batches(params)

    source = open_input(make, mode="train", params=before)
    for _ in range(cut):
        next(source)
    resumed = open_input(make, mode="train", params=after, position=source.position)
    if source.position.examples < 20:
        rest = np.concatenate([b.features["x"] for b in resumed])
        np.testing.assert_array_equal(rest, rows[source.position.examples :])


@pytest.mark.parametrize("before", [1, 2, 4])
def test_a_replay_after_a_change_of_batch_size_cuts_lists_of_strings_too(before):
    def batches(size):
        for start in range(0, 12, size):
            rows = range(start, start + size)
            yield {"x": np.array(rows), "word": [str(row) for row in rows]}

    source = open_input(lambda: batches(before), mode="train")
    next(source)
    resumed = open_input(lambda: batches(3), mode="train", position=source.position)
    drawn = list(resumed)
    assert [word for b in drawn for word in b.host["word"]] == [str(row) for row in range(before, 12)]
    assert [x for b in drawn for x in b.features["x"].tolist()] == list(range(before, 12))


class OneIterator(Loader):
    """Imitates torch's DataLoader with persistent workers: `iter` restarts its only iterator."""

    only = None

    def __iter__(self):
        self.only = self.only or Remembered(self.n)
        self.only.i = 0
        return self.only


def test_a_loader_of_one_iterator_is_read_by_one_call_at_a_time():
    loader = OneIterator(4)
    training = open_input(lambda: loader, mode="train")
    assert ids(training, 2) == [0, 1]
    with pytest.raises(InputError, match=r"OneIterator has one iterator, which another call is still reading"):
        next(open_input(from_iterable(lambda: loader), mode="eval"))
    training.close()
    for _ in range(2):
        assert ids(open_input(lambda: loader, mode="eval")) == [0, 1, 2, 3]
    position = InputPosition("", 8, 4)._replace(fingerprint=training.position.fingerprint)
    again = open_input(lambda: loader, mode="train", position=position)  # it ends there, and is opened once more
    assert ids(again) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ([np.ones((2, 1))], "A batch of 1 item was drawn: without labels, return features without a tuple or list"),
        ([np.ones(2)] * 3, r"A batch of 3 items was drawn: put further arrays \(weights, ids\) into a dict"),
        (UserDict(x=np.ones(2)), r"features is a UserDict, not a dict of arrays: pass dict\(...\) of it\."),
    ],
)
def test_a_batch_of_another_form_is_told_with_its_cure(element, message):
    with pytest.raises(InputError, match=message):
        next(open_input(lambda: iter([element]), mode="train"))


def test_a_tensor_that_is_no_array_is_told_with_its_cure():
    class Tensor:
        def __array__(self, *_, **__):
            raise TypeError("Got unsupported ScalarType BFloat16")

    with pytest.raises(InputError, match=r"BFloat16\. Convert it .* \(a torch tensor: \.detach\(\)\.cpu\(\)"):
        next(open_input(lambda: [{"x": Tensor()}], mode="train"))


def test_an_iterator_in_use_goes_on_where_it_stands():
    for iterator in (count_to(6), Remembered(6), map(batch, range(6))):
        source = open_input(lambda it=iterator: it, mode="train")
        assert ids(source, 2) == [0, 1]
        source.close()
        resumed = open_input(lambda it=iterator: it, mode="train", position=source.position)
        assert ids(resumed, 2) == [2, 3]
        assert "continues where its iterator is (the checkpoint has 4 examples)" in resumed.restored
        assert resumed.position.examples == 8


class Remembered:
    """A user-defined iterator class with `iter(x) is x` and without a position."""

    def __init__(self, n):
        self.i, self.n = 0, n

    def __iter__(self):
        return self

    def __next__(self):
        if self.i == self.n:
            raise StopIteration
        self.i += 1
        return batch(self.i - 1)


def test_a_fresh_iterator_of_a_users_class_is_replayed():
    source = open_input(lambda: Remembered(6), mode="train")
    ids(source, 2)
    assert ids(open_input(lambda: Remembered(6), mode="train", position=source.position)) == [2, 3, 4, 5]


class Positioned(Remembered):
    """Imitates a grain iterator."""

    def get_state(self):
        return {"i": self.i}

    def set_state(self, state):
        if state["i"] > self.n:
            raise ValueError("no such place")
        self.i = state["i"]


def test_an_iterator_with_a_state_is_restored_by_it():
    source = open_input(lambda: Positioned(6), mode="train")
    batches = list(source)
    assert [b.position.source_state for b in batches] == [{"i": i} for i in range(1, 7)]
    resumed = open_input(lambda: Positioned(6), mode="train", position=batches[1].position)
    assert ids(resumed) == [2, 3, 4, 5]
    assert resumed.restored == "Input continues after 4 examples (2 batches)."
    ended = open_input(lambda: Positioned(6), mode="train", position=batches[-1].position)
    assert ids(ended) == list(range(6))
    assert "it ends after 12 examples" in ended.restored


def test_a_state_that_the_iterator_refuses_starts_again_with_its_reason():
    source = open_input(lambda: Positioned(6), mode="train")
    ids(source, 2)
    bad = source.position._replace(source_state={"i": 99})
    resumed = open_input(lambda: Positioned(6), mode="train", position=bad)
    assert ids(resumed) == list(range(6))
    assert "refused the saved state (ValueError('no such place'))" in resumed.restored


def test_another_loader_is_told_by_its_length_and_batch_size():
    source = open_input(lambda: Loader(6), mode="train")
    ids(source, 2)
    for loader, difference in ((Loader(7), "len was 6 and is 7"), (Loader(6, 4), "batch_size was 2 and is 4")):
        resumed = open_input(lambda it=loader: it, mode="train", position=source.position)
        assert ids(resumed, 1) == [0]
        assert difference in resumed.restored
    dataset = open_input(lambda: Dataset(4), mode="train", position=source.position)
    assert ids(dataset, 1) == [0]
    assert "Loader and is" in dataset.restored


def test_a_loader_whose_length_is_unknown_is_read():
    class Endless(Loader):
        def __len__(self):
            raise TypeError("unknown")

    assert ids(open_input(lambda: Endless(3), mode="train")) == [0, 1, 2]


@pytest.mark.parametrize("bad", [3, None, object()])
def test_from_iterable_refuses_what_is_no_input(bad):
    with pytest.raises(TypeError, match="from_iterable needs an input_fn or an iterable of batches"):
        from_iterable(bad)


def test_from_iterable_hands_arguments_on():
    input_fn = from_iterable(lambda params, input_context: count_to(params + input_context.input_pipeline_id))
    assert ids(open_input(input_fn, mode="train", params=3)) == [0, 1, 2]
    with pytest.raises(ValueError, match="not expected args"):
        from_iterable(lambda wrong: count_to(1))


def test_an_error_in_the_input_passes_through_and_closing_ends_the_source():
    def broken():
        yield batch(0)
        raise RuntimeError("disk on fire")

    source = open_input(broken, mode="train")
    next(source)
    with pytest.raises(RuntimeError, match="disk on fire"):
        next(source)
    source.close()
    source.close()
    assert list(source) == []


class Column:
    """Imitates a Series with missing values: its own dtype stays the same, but the dtype of its array changes."""

    dtype = "Int64"

    def __init__(self, *values):
        self.values = np.array(values)
        self.shape = self.values.shape

    def __array__(self, dtype=None, copy=None):
        return self.values


def test_a_column_that_becomes_another_array_is_refused():
    batches = [{"x": Column(1, 2)}, {"x": Column(3, 4)}, {"x": Column(5, np.nan)}]
    source = open_input(lambda: batches, mode="eval")
    assert [next(source).features["x"].tolist() for _ in range(2)] == [[1, 2], [3, 4]]
    with pytest.raises(InputError, match="dtype of feature 'x' changed between batches: as an array it was int64 and"):
        next(source)


def test_columns_are_copied_where_the_input_may_write_again():
    values = np.array([1.0, 2.0], np.float32)

    def written_again():
        column = Column()
        column.values, column.shape = values, values.shape
        yield {"x": column}
        values[:] = 0

    first = next(iter(open_input(written_again, mode="eval")))
    values[:] = 0
    assert first.features["x"].tolist() == [1, 2]


class Frame:
    """Imitates a table of pandas, polars or Arrow."""

    columns = ("id", "x")

    def __array__(self, dtype=None, copy=None):
        return np.zeros((2, 2))


@pytest.mark.parametrize("element", [Frame(), {"table": Frame()}, (Frame(), np.zeros(2))])
def test_a_table_does_not_become_one_matrix(element):
    with pytest.raises(InputError, match=r"is a .*Frame, whose columns would become one matrix without names"):
        next(open_input(lambda: iter([element]), mode="eval"))
    with pytest.raises(InputError, match=r"^x is a .*Frame, whose columns"):
        numpy_input_fn(Frame(), shuffle=False)
