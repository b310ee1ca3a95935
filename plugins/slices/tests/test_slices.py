"""Tests of entry points and edge cases: all forms of keys, padding, host transforms, growth, refusals, schedules."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core import metrics
from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_slices import SliceHook, rows_of
from estimator_slices.hook import _own_rows
from estimator_slices.keys import Drawn, KeyReader


def model_fn(features, labels, mode):
    offset = ec.get_variable("offset", ())
    found = {"mean": metrics.mean(labels + 0 * offset)}
    loss = metrics_loss(labels + offset)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.0), eval_metric_ops=found)


def metrics_loss(values):
    weights = ec.example_weights()
    return jnp.mean(values) if weights is None else jnp.sum(values * weights) / jnp.sum(weights)


def estimator(tmp_path, **arguments):
    config = ec.RunConfig(tf_random_seed=1, allow_untrained=True, save_checkpoints_steps=1)
    return ec.Estimator(model_fn, str(tmp_path), config, **arguments)


def batches(keys, size=4, **more):
    """Returns an input of one key with the labels 0, 1, 2, ..."""
    labels = np.arange(len(keys), dtype=np.float32)

    def input_fn():
        for start in range(0, len(keys), size):
            rows = slice(start, start + size)
            features = {"key": keys[rows], "x": labels[rows], **{name: value[rows] for name, value in more.items()}}
            yield features, labels[rows]

    return input_fn


def values(found):
    return {row.name: (row.examples, row.metrics["mean"]) for row in rows_of(found)}


class NAType:
    """Acts like `pandas.NA`, for which comparisons have no answer."""

    def __ne__(self, other):
        return self

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")

    def __repr__(self):
        return "<NA>"

    __hash__ = None


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        (np.array(["b", "a", "b", "c", "a"]), ["a", "b", "c"]),
        (np.array(["b", NAType(), "<NA>", NAType(), "b"], object), ["<NA>", "b", "(missing)"]),
        (np.array([b"b", b"a", b"b", b"c", b"a"]), ["a", "b", "c"]),
        (np.array(["b", None, "b", float("nan"), "a"], object), ["a", "b", "(missing)"]),
        (np.array([2, 1, 2, 3, 1]), ["1", "2", "3"]),
        (np.array([[2], [1], [2], [3], [1]]), ["1", "2", "3"]),
        (np.array([0.5, np.nan, 0.5, np.nan, 2.0]), ["0.5", "2.0", "(missing)"]),
        (np.array([True, False, True, True, False]), ["False", "True"]),
        (
            np.array(["2024-01-02", "2024-01-01", "NaT", "NaT", "NaT"], "datetime64[D]"),
            ["2024-01-01", "2024-01-02", "(missing)"],
        ),
    ],
    ids=["text", "NA of pandas", "bytes", "objects", "integers", "a column", "floats", "booleans", "dates"],
)
def test_keys_of_every_form(tmp_path, keys, names):
    found = values(estimator(tmp_path).evaluate(batches(keys, size=2), slices=["key"]))
    assert list(found) == ["all", *(f"key={name}" for name in names)]
    assert sum(examples for examples, _ in found.values()) == 10
    assert found["all"] == (5, 2.0)


def test_values_that_python_takes_for_one_are_several_slices(tmp_path):
    """This holds within a batch, across batches and in crossings. Each number has its own name."""
    mixed = [True, 1, 1.0, "1", 0, False, None, "(missing)"]
    other = np.arange(16) // 8
    keys = np.array([*mixed, *reversed(mixed)], object)
    found = estimator(tmp_path).evaluate(batches(keys, size=8, other=other), slices=["key", ("key", "other")])
    rows = {repr(tuple(row.slice.values())): row.metrics["mean"] for row in rows_of(found)}
    assert len(rows) == 1 + 8 + 16
    for place, value in enumerate(mixed):
        assert (rows[f"({value!r},)"], rows[f"({value!r}, 0)"]) == (7.5, place)
    crossed = {name for name in found if name.startswith("mean/") and name.endswith("other=0")}
    assert crossed == {f"mean/key={told},other=0" for told in _told_apart(mixed)}
    assert found["mean/key='1',other=0"] == 3
    assert found["mean/key='(missing)',other=0"] == 7


def _told_apart(mixed):
    return [repr(value) if isinstance(value, str) else "(missing)" if value is None else str(value) for value in mixed]


@pytest.mark.parametrize(
    "given", [{}, {"middle": lambda labels: metrics.on_host(lambda rows: np.median(rows), rows=labels)}]
)
def test_a_model_without_metrics_of_examples(tmp_path, given, caplog):
    """Slices are counted, and metrics of whole arrays are computed."""

    def plain(features, labels, mode):
        found = {name: make(labels) for name, make in given.items()}
        loss = jnp.mean(labels + ec.get_variable("offset", ()))
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.0), eval_metric_ops=found)

    config = ec.RunConfig(tf_random_seed=1, allow_untrained=True)
    found = ec.Estimator(plain, str(tmp_path), config).evaluate(batches(np.array([1, 1, 2, 2, 2])), slices=["key"])
    rows = {row.name: (row.examples, row.metrics.get("middle")) for row in rows_of(found)}
    middles = (2.0, 0.5, 3.0) if given else (None, None, None)
    assert rows == {"all": (5, middles[0]), "key=1": (2, middles[1]), "key=2": (3, middles[2])}
    assert ("Slices have no metrics, only counts: eval_metric_ops has no metric of examples." in caplog.text) == (
        not given
    )


@pytest.mark.parametrize("ragged", ["exact", "pad"])
def test_a_mean_of_scalars_counts_batches_and_has_no_slices(tmp_path, ragged):
    """The losses of a MultiHead are such means. Each batch would count once for each group of examples."""

    def with_loss(features, labels, mode):
        spec = model_fn(features, labels, mode)
        losses = {"loss/head": metrics.mean(metrics_loss(labels)), "loss/rate": metrics.mean(0.1)}
        return ec.EstimatorSpec(mode, loss=spec.loss, eval_metric_ops={**spec.eval_metric_ops, **losses})

    keys, labels = np.array([1, 1, 2, 2, 2, 1]), np.arange(6, dtype=np.float32)
    inputs = ec.inputs.numpy_input_fn({"key": keys}, labels, batch_size=4, shuffle=False, ragged=ragged)
    config = ec.RunConfig(tf_random_seed=1, allow_untrained=True)
    found = ec.Estimator(with_loss, str(tmp_path), config).evaluate(inputs, slices=["key"])
    assert found["loss/head"] == (1.5 + 4.5) / 2
    assert values(found) == {"all": (6, 2.5), "key=1": (3, 2.0), "key=2": (3, 3.0)}
    assert {name for row in rows_of(found) for name in row.metrics} == {"mean"}
    assert not [name for name in found if name.startswith("loss/head/")]


def test_slices_that_appear_late_grow_beyond_the_first_room(tmp_path):
    keys = np.arange(100)
    found = values(estimator(tmp_path).evaluate(batches(keys, size=10), slices=["key"]))
    assert len(found) == 101
    assert all(found[f"key={key}"] == (1, float(key)) for key in keys)


@pytest.mark.parametrize("how", ["pad", "is_real_example"])
def test_padding_is_in_no_slice(tmp_path, how):
    keys = np.array(["a", "b", "a", "b", "a", "a"])
    if how == "pad":
        padded = ec.inputs.from_iterable(batches(keys), ragged="pad")
    else:
        real = np.array([1, 1, 1, 1, 1, 0])
        padded, keys = batches(keys, is_real_example=real), keys[:5]
    found = values(estimator(tmp_path).evaluate(padded, slices=["key"]))
    assert found["key=a"] == (np.sum(keys == "a"), np.mean(np.flatnonzero(keys == "a")))
    assert found["all"][0] == len(keys)


class DropsKey:
    """A host transform that turns the key into a number with another name."""

    name, version, files = "drops_key", 1, {}

    def config(self):
        return {}

    def apply(self, batch):
        return {"x": batch["x"], "hashed": np.array([len(key) for key in batch["key"]])}


def test_keys_are_read_before_host_transforms(tmp_path):
    found = values(
        estimator(tmp_path, host_transforms=[DropsKey()]).evaluate(batches(np.array(["a", "bb", "a"])), slices=["key"])
    )
    assert found["key=a"] == (2, 1.0)


def test_labels_and_a_second_evaluation(tmp_path):
    made, keys = estimator(tmp_path), np.array(["a", "b"])
    first = made.evaluate(batches(keys), slices=["labels"])
    assert values(first)["labels=1.0"] == (1, 1.0)
    assert made.evaluate(batches(keys), slices=["labels"]) == first
    assert "slices" not in made.evaluate(batches(keys))


def test_an_empty_text_is_a_slice_beside_others(tmp_path):
    """Files contain an empty text if a text is missing."""
    found = estimator(tmp_path).evaluate(batches(np.array(["b", "", "a", ""])), slices=["key"])
    assert [(row.name, row.examples) for row in rows_of(found)] == [("all", 4), ("key=", 2), ("key=a", 1), ("key=b", 1)]


def test_only_so_many_batches_count(tmp_path):
    found = values(estimator(tmp_path).evaluate(batches(np.array(list("ababab")), size=2), steps=2, slices=["key"]))
    assert found == {"all": (4, 1.5), "key=a": (2, 1.0), "key=b": (2, 2.0)}


@pytest.mark.parametrize(
    ("slices", "error", "message"),
    [
        ("key", ArgumentTypeError, r"Write \['key'\]"),
        ([3], ArgumentTypeError, "given: 3"),
        ([("key", "key")], ArgumentError, "names a feature twice"),
        ([()], ArgumentTypeError, "feature names"),
        (["kye"], ArgumentError, r"no feature 'kye'\. Did you mean 'key'"),
        (["wide"], ArgumentError, r"'wide' has the shape \(4, 2\)"),
    ],
)
def test_what_cannot_be_a_slice_is_refused(tmp_path, slices, error, message):
    keys = np.array(["a", "b", "a", "b"])
    with pytest.raises(error, match=message):
        estimator(tmp_path).evaluate(batches(keys, wide=np.zeros((4, 2))), slices=slices)
    assert not (tmp_path / "eval" / "metrics.jsonl").exists()


def test_more_slices_than_expected_are_refused_by_their_feature(tmp_path):
    with pytest.raises(ArgumentError, match=r"more than 5 slices \(key: 8\)"):
        estimator(tmp_path).evaluate(batches(np.arange(20)), hooks=[SliceHook(["key"], most=5)])


@pytest.mark.parametrize("options", [{"groups": 1}, {"groups": -2}, {"level": 1.0}])
def test_options_out_of_range(options):
    with pytest.raises(ArgumentError):
        SliceHook(["key"], **options)


def test_train_and_evaluate_and_its_event_file(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    keys = np.array(["a", "b", "a", "b"])
    train = ec.TrainSpec(lambda: (next(iter(batches(keys)())) for _ in range(9)), max_steps=2)
    found, _ = ec.train_and_evaluate(estimator(tmp_path), train, ec.EvalSpec(batches(keys), slices=["key"]))
    assert values(found) == {"all": (4, 1.5), "key=a": (2, 1.0), "key=b": (2, 2.0)}
    assert [rows_of(one)[1].examples for one in ec.read_eval_metrics(tmp_path / "eval").values()] == [2, 2]
    events = EventAccumulator(str(tmp_path / "eval"))
    events.Reload()
    assert [(point.step, point.value) for point in events.Scalars("mean/key_b")] == [(1, 2.0), (2, 2.0)]


def test_train_and_evaluate_refuses_slices_before_it_trains(tmp_path):
    with pytest.raises(ArgumentTypeError, match=r"EvalSpec\.slices"):
        ec.EvalSpec(batches(np.zeros(2)), slices="key")
    spec = ec.EvalSpec(batches(np.zeros(2)), slices=[("key", "key")])
    with pytest.raises(ArgumentError, match="names a feature twice"):
        ec.train_and_evaluate(estimator(tmp_path), ec.TrainSpec(batches(np.zeros(2)), max_steps=1), spec)
    assert not (tmp_path / "checkpoints").exists()


def test_examples_of_one_unit_are_in_one_group():
    reader = KeyReader([("key",)], groups=7, unit="user", part=0)
    users = np.repeat(np.arange(30), 5)
    drawn = reader.read({"key": users, "user": users.astype(str)}, None)
    assert all(len(set(drawn.groups[users == user])) == 1 for user in range(30))
    assert len(set(drawn.groups)) == 7


def drawn_rows(count):
    return Drawn([[["a"]]], [np.zeros(count, np.int32)], np.zeros(count, np.int32), np.ones(count, bool))


@pytest.mark.parametrize(
    ("drawn", "total", "size", "own"),
    [
        (10, 20, 20, list(range(10))),  # arrays: each of two processes draws its half
        (20, 20, 20, []),  # files: each draws all, and the half of the other is removed afterwards
        (3, 20, 3, []),  # the last batch of files, padded
        (10, 20, 10, []),  # the same, with as many rows as each process has of it
        (3, 3, 3, []),  # too few rows to divide
        (20, None, 20, None),  # the input divides itself
    ],
)
def test_which_rows_of_a_batch_were_drawn_here(drawn, total, size, own):
    run = SimpleNamespace(
        batch=SimpleNamespace(total=total, size=size), input_rows=lambda total: np.arange(total)[: total // 2]
    )
    assert _own_rows(run, drawn_rows(drawn)) == own
