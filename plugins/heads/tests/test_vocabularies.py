"""Label strings stay on the host: ids inside the computation, names in predictions and exports."""

from enum import Enum
from pathlib import Path

import numpy as np
import optax
import pytest

import estimator_core as ec
import estimator_heads as eh
from estimator_core.errors import ArgumentError, InputError
from estimator_heads.data.label_sets import LabelSets
from estimator_heads.transforms import ClassNames, LabelIds, MultiHotLabels
from estimator_heads.vocabulary import Vocabulary

NAMES = ["aang", "iroh", "katara"]


@pytest.mark.parametrize("dtype", [np.str_, object, np.bytes_])
def test_ids_of_strings_bytes_and_objects(dtype):
    labels = np.array([["iroh"], ["aang"], ["katara"]]).astype(dtype)
    np.testing.assert_array_equal(Vocabulary(NAMES).ids(labels), [[1], [0], [2]])


def test_non_ascii_labels():
    vocabulary = Vocabulary(["blå", "grün", "日本"])
    labels = np.array(["日本".encode(), "blå".encode()], object)
    np.testing.assert_array_equal(vocabulary.ids(labels), [2, 0])


@pytest.mark.parametrize("names", ["abc", [], ["a", 1], ["a", "a"], {"a": 1}])
def test_a_vocabulary_is_a_list_of_different_strings(names):
    with pytest.raises(ArgumentError, match="label_vocabulary"):
        Vocabulary(names)


def test_unknown_labels_are_named():
    with pytest.raises(ArgumentError, match=r"Labels must be >= 0: \['toph'\] are not in label_vocabulary"):
        LabelIds(NAMES).apply({"labels": np.array(["aang", "toph"])})


def test_numbers_are_no_labels_of_a_vocabulary():
    with pytest.raises(ArgumentError, match="should be strings"):
        LabelIds(NAMES).apply({"labels": np.array([1, 2])})


@pytest.mark.parametrize("dtype", ["S", object])
def test_labels_that_are_not_utf_8_are_told_as_such(dtype):
    with pytest.raises(ArgumentError, match=r"Labels should be UTF-8\. Instead got b'\\xff'"):
        Vocabulary(["a", "b"]).ids(np.array([b"a", b"\xff"], dtype))


def test_blank_labels_fill_up_sequences():
    labels = np.array([["iroh", "aang", ""], ["katara", "", ""]], object)
    found = LabelIds(NAMES, blank=-100).apply({"labels": labels})["labels"]
    np.testing.assert_array_equal(found, [[1, 0, -100], [2, -100, -100]])
    assert found.dtype == np.int32
    with pytest.raises(ArgumentError, match="Labels must be >= 0"):
        LabelIds(NAMES).apply({"labels": labels})


def test_label_strings_of_tokens():
    head = eh.TokenClassificationHead(3, label_names=["O", "B-A", "I-A"], spans=True)
    words, ids = np.array([["B-A", "I-A", "O", ""]]), np.array([[1, 2, 0, -100]])
    logits = np.random.default_rng(1).normal(size=(1, 4, 3)).astype(np.float32)
    (transform,) = head.label_transforms()
    np.testing.assert_array_equal(transform.apply({"labels": words})["labels"], ids)
    assert float(head.loss(words, logits)) == float(head.loss(ids, logits))
    with pytest.raises(ArgumentError, match="no label_vocabulary"):
        eh.TokenClassificationHead(3).loss(words, logits)


@pytest.mark.parametrize(
    "head",
    [
        eh.BinaryClassHead(label_vocabulary=["no", "yes"]),
        eh.MultiClassHead(3, label_vocabulary=NAMES),
        eh.TokenClassificationHead(3, label_names=NAMES),
        eh.MultiHead([eh.MultiClassHead(3, label_vocabulary=NAMES, name="who")]),
    ],
    ids=lambda head: type(head).__name__,
)
def test_strings_that_did_not_reach_the_model_are_explained(head):
    # The input removes strings from the features and labels of the model, so its labels are None.
    with pytest.raises(ArgumentError, match=r"label_transforms=head\.label_transforms\(\)"):
        head.loss(None, np.zeros((2, 1, head.logits_dimension)))


def test_multi_hot_from_ids_and_names():
    rows = np.array([[0, 2], [1, -1]])
    np.testing.assert_array_equal(MultiHotLabels(3).apply({"labels": rows})["labels"], [[1, 0, 1], [0, 1, 0]])
    named = MultiHotLabels(3, NAMES).apply({"labels": np.array(["iroh", "aang"])})["labels"]
    np.testing.assert_array_equal(named, [[0, 1, 0], [1, 0, 0]])
    with pytest.raises(ArgumentError, match=r"values in \[0, 3\)"):
        MultiHotLabels(3).apply({"labels": np.array([[0, 3]])})
    with pytest.raises(ArgumentError, match="should be integer"):
        MultiHotLabels(3).apply({"labels": np.array([[0.5]])})


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool, np.float32])
@pytest.mark.parametrize("names", [None, NAMES])
def test_multi_hot_labels_stay_as_they_are(names, dtype):
    hot = np.array([[0, 0, 0], [1, 0, 1], [1, 1, 1]])
    transform = MultiHotLabels(3, names)
    found = transform.apply({"labels": hot.astype(dtype)})["labels"]
    assert (found.tolist(), found.dtype) == (hot.tolist(), np.int32)
    steps = np.stack([hot, hot[::-1]])
    np.testing.assert_array_equal(transform.apply({"labels": steps.astype(dtype)})["labels"], steps)


def test_multi_hot_labels_of_files_and_lists():
    hot = [[0, 0, 0], [1, 0, 1], [0, 1, 0]]
    listed = np.empty(3, object)
    listed[:] = [[0, 0, 0], np.array([1, 0, 1]), (0, 1, 0)]
    filled = np.array([[*row, -1] for row in hot])  # as files fill up lists
    for labels in (listed, filled):
        assert MultiHotLabels(3).apply({"labels": labels})["labels"].tolist() == hot
    ids = np.array([[0, 1, 2, -1], [1, -1, -1, -1], [0, 1, -1, -1]])
    assert MultiHotLabels(3).apply({"labels": ids})["labels"].tolist() == [[1, 1, 1], [0, 1, 0], [1, 1, 0]]


def test_two_columns_of_two_classes_have_one_meaning():
    """Ids that are 0 and 1 in each row of a batch would have another meaning in the next batch."""
    with pytest.raises(ArgumentError, match=r"Given: \[1, -1\]. For ids, add a third column of -1"):
        MultiHotLabels(2).apply({"labels": np.array([[0, 1], [1, -1]])})
    ids = np.array([[0, 1, -1], [1, -1, -1]])
    assert MultiHotLabels(2).apply({"labels": ids})["labels"].tolist() == [[1, 1], [0, 1]]


def test_as_many_ids_as_classes_are_still_ids():
    rows = np.array([[0, 1, 2], [1, 0, -1], [-1, -1, -1]])
    found = MultiHotLabels(3).apply({"labels": rows})["labels"]
    np.testing.assert_array_equal(found, [[1, 1, 1], [1, 1, 0], [0, 0, 0]])


@pytest.mark.parametrize("form", [np.int64, np.uint8, bool, np.float32, "lists", "filled"])
def test_multi_hot_labels_of_another_width_are_not_ids(form):
    hot = np.array([[0, 1, 0, 0, 1], [1, 0, 0, 1, 0]])
    labels = hot
    if form == "lists":
        labels = np.empty(2, object)
        labels[:] = hot.tolist()
    else:
        labels = np.pad(hot, [(0, 0), (0, 1)], constant_values=-1) if form == "filled" else hot.astype(form)
    with pytest.raises(ArgumentError, match=r"in row 0 .* it has 5 numbers .* n_classes of the MultiLabelHead is 7"):
        MultiHotLabels(7).apply({"labels": labels})


@pytest.mark.parametrize("row", [[0, 1, -1, -1, -1], [1, -1, 0, -1, -1], [0, 2, 1, 1, 0], [0, 0, -1, -1, -1], [-1] * 5])
def test_rows_that_are_ids_stay_ids_of_any_width(row):
    (found,) = MultiHotLabels(7).apply({"labels": np.array([row])})["labels"].tolist()
    assert {place for place, value in enumerate(found) if value} == set(row) - {-1}


def test_columns_of_ids_are_looked_at_as_a_whole(monkeypatch):
    monkeypatch.setattr(LabelSets, "_row_fault", None)
    for labels in (np.arange(7), np.array([[0, 1], [1, -1]])):
        assert LabelSets(n_classes=7).fault(labels, None) is None


def test_a_row_means_the_same_in_every_batch():
    with pytest.raises(
        ArgumentError, match=r"hold \[0, 1, 0\] in row 1 .*: it is multi-hot, but row 0 is not: \[1, 2, -1\]"
    ):
        MultiHotLabels(3).apply({"labels": np.array([[1, 2, -1], [0, 1, 0]])})


@pytest.mark.parametrize(
    ("names", "wrong", "message"),
    [
        (None, [2, 5], r"hold 5 in row 2 .*: it is not a class id \(.* values in \[0, 3\)\)"),
        (None, ["aang"], "hold 'aang' in row 2 .*: it is a string, but the classes have no names"),
        (None, [True], "hold True in row 2 .*: it is of type bool"),
        (NAMES, ["iroh", b"toph"], "hold 'toph' in row 2 .*: it is not one of the classes 'aang', 'iroh', 'katara'"),
        (NAMES, [None], "hold None in row 2 .*: it is missing"),
        (NAMES, [1], "hold 1 in row 2 .*: it is of type int, but labels should be strings"),
    ],
)
def test_a_bad_label_of_several_is_told_with_its_row(names, wrong, message):
    good = [0, 2] if names is None else ["aang"]
    labels = np.empty(3, object)
    labels[:] = [good, [], wrong]
    with pytest.raises(ArgumentError, match=f"labels {message}"):
        MultiHotLabels(3, names).apply({"labels": labels})
    contract = eh.HeadContract(eh.MultiLabelHead(3, label_vocabulary=names))
    source = [({"x": np.zeros(2)}, labels[:2]), ({"x": np.zeros(1)}, labels[2:])]
    batches, convert = contract.open(source, mode="train", memory=Path("none"), check=True)
    kept = [convert(batch) for batch in batches[:1]]
    assert kept[0][1] is batches[0][1]
    with pytest.raises(InputError, match=f"Labels {message.replace('row 2 .*', 'row 0 of batch 2, example 3 .*')}"):
        convert(batches[1])


def test_a_column_of_lists_is_the_labels():
    """A DataFrame with one column makes a dict of labels."""
    contract = eh.HeadContract(eh.MultiHead([eh.MultiLabelHead(3, name="tags")]))
    alone = eh.HeadContract(eh.MultiLabelHead(3))
    lists = np.empty(2, object)
    lists[:] = [[0], [1, 2]]
    for made, labels in ((contract, {"tags": lists}), (alone, {"anything": lists})):
        (batch,), convert = made.open([({}, labels)], mode="train", memory=Path("none"), check=True)
        _, found = convert(batch)
        for transform in made.label_transforms:
            found = transform.apply(found if isinstance(found, dict) else {"labels": found})
        (hot,) = found.values()
        assert hot.tolist() == [[1, 0, 0], [0, 1, 1]]
    with pytest.raises(ArgumentError, match=r"The labels are a dict of 'a', 'b', but the head takes one array"):
        MultiHotLabels(2).apply({"a": np.array([0]), "b": np.array([1])})
    with pytest.raises(ArgumentError, match=r"The labels are a dict of 'a', but the head takes a dict with 'who'"):
        LabelIds(NAMES, "who").apply({"a": np.array(["iroh"])})


def test_multi_hot_labels_through_the_transforms_of_an_estimator(tmp_path):
    head = eh.MultiLabelHead(3, classes_for_class_based_metrics=[0, 2])
    features, ids = points(3)
    hot = np.eye(3, dtype=np.int64)[ids]
    estimator = ec.Estimator(model(head), str(tmp_path), label_transforms=head.label_transforms())
    train = ec.inputs.numpy_input_fn(features, hot, batch_size=20, num_epochs=None, shuffle=True, seed=1)
    estimator.train(train, steps=60)
    result = estimator.evaluate(ec.inputs.numpy_input_fn(features, hot, batch_size=20, shuffle=False))
    assert min(result["auc"], result["auc/class0"], result["auc/class2"]) > 0.95


def test_names_inside_a_multi_head():
    transform = ClassNames(["no", "yes"], ["classes"], head="click")
    found = transform.apply({("click", "classes"): np.array([1]), "other/classes": np.array([0])})
    assert found[("click", "classes")].tolist() == ["yes"]
    assert found["other/classes"].tolist() == [0]
    assert transform.apply({"click/classes": np.array([0])})["click/classes"].tolist() == ["no"]
    assert transform.apply({"classes": np.array([0])})["classes"].tolist() == [0]


def model(head):
    def model_fn(features, labels, mode):
        kernel = ec.get_variable("kernel", (2, head.logits_dimension))
        return head.create_estimator_spec(features, mode, features["x"] @ kernel, labels, optimizer=optax.sgd(1.0))

    return model_fn


def points(classes):
    rng = np.random.default_rng(3)
    ids = rng.integers(0, classes, 60)
    angles = 2 * np.pi * ids / classes
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1) + rng.normal(0, 0.05, (60, 2))
    return {"x": x.astype(np.float32)}, ids


def test_strings_through_an_estimator(tmp_path):
    head = eh.MultiClassHead(3, label_vocabulary=NAMES)
    features, ids = points(3)
    words = np.array(NAMES)[ids]
    estimator = ec.Estimator(model(head), str(tmp_path), label_transforms=head.label_transforms())
    train = ec.inputs.numpy_input_fn(features, words, batch_size=20, num_epochs=None, shuffle=True, seed=1)
    once = ec.inputs.numpy_input_fn(features, words, batch_size=20, num_epochs=1, shuffle=False)
    estimator.train(train, steps=60)
    assert estimator.evaluate(once)["accuracy"] > 0.95
    found = list(estimator.predict(once))
    assert np.mean([row["classes"][0] == word for row, word in zip(found, words, strict=True)]) > 0.95
    assert found[0]["all_classes"].tolist() == NAMES
    (only,) = next(iter(estimator.predict(once, predict_keys=["classes"])))
    assert only == "classes"


def test_strings_of_a_multi_head_through_an_estimator(tmp_path):
    head = eh.MultiHead(
        [
            eh.MultiClassHead(3, label_vocabulary=NAMES, name="who"),
            eh.BinaryClassHead(label_vocabulary=["no", "yes"], name="bends"),
        ]
    )
    features, ids = points(3)
    labels = {"who": np.array(NAMES)[ids], "bends": np.where(ids == 1, "no", "yes")}
    estimator = ec.Estimator(model(head), str(tmp_path), label_transforms=head.label_transforms())
    train = ec.inputs.numpy_input_fn(features, labels, batch_size=20, num_epochs=None, shuffle=True, seed=1)
    once = ec.inputs.numpy_input_fn(features, labels, batch_size=20, num_epochs=1, shuffle=False)
    estimator.train(train, steps=20)
    result = estimator.evaluate(once)
    assert {"accuracy/who", "accuracy/bends", "loss/who", "loss/bends"} <= set(result)
    row = next(iter(estimator.predict(once)))
    assert row[("who", "classes")][0] in NAMES
    assert row[("bends", "all_classes")].tolist() == ["no", "yes"]


def test_exports_of_a_multi_head_know_the_names_of_every_head():
    head = eh.MultiHead([eh.MultiClassHead(3, label_vocabulary=NAMES, name="who"), eh.RegressionHead(name="how_much")])
    logits = {"who": np.zeros((2, 3), np.float32), "how_much": np.zeros((2, 1), np.float32)}
    outputs = head.create_estimator_spec({}, ec.ModeKeys.PREDICT, logits).export_outputs
    assert outputs["who/predict"].class_names == tuple(NAMES)
    assert outputs["who"].class_names == tuple(NAMES)
    assert outputs["how_much/predict"].class_names is None


@pytest.mark.parametrize(
    ("head", "labels", "expected"),
    [
        (eh.MultiClassHead(3, label_vocabulary=NAMES), {"labels": np.array([["iroh"]])}, {"labels": [[1]]}),
        (eh.MultiClassHead(3, label_vocabulary=NAMES), {"labels": np.array([[2]])}, {"labels": [[2]]}),
        (
            eh.MultiHead(
                [eh.BinaryClassHead(label_vocabulary=["no", "yes"], name="click"), eh.RegressionHead(name="price")]
            ),
            {"click": np.array(["yes"], object), "price": np.array([3.0])},
            {"click": [1], "price": [3.0]},
        ),
    ],
)
def test_a_contract_makes_ids_of_the_label_strings_of_an_export(tmp_path, head, labels, expected):
    for transform in eh.HeadContract(head).exported_labels(tmp_path):
        labels = transform.apply(labels)
    assert {name: value.tolist() for name, value in labels.items()} == expected


def test_lists_of_ids_are_checked_together(monkeypatch):
    """In earlier versions Python checked each row twice per batch: as data, and before its conversion to multi-hot."""
    rng = np.random.default_rng(3)
    faulty = 0
    for _ in range(300):
        rows = np.empty(4, object)
        for place, size in enumerate(rng.integers(0, 5, 4)):
            rows[place] = rng.integers(-1 - (place == 2), (2, 5, 5, 6)[place], size).tolist()
        rule = LabelSets(n_classes=5)
        alone = [rule.fault(rows[row : row + 1], None) is not None for row in range(4)]
        found = rule.fault(rows, None)
        assert (None if found is None else found.row) == (alone.index(True) if True in alone else None)
        faulty += found is not None
    assert 0 < faulty < 300
    rows[:] = [[0, 2], [], [2], [1, -1, -1, -1]]
    monkeypatch.setattr(LabelSets, "_row_fault", lambda *_: pytest.fail("a row was looked at by itself"))
    assert LabelSets(n_classes=5).fault(rows, None) is None


class Colour(str, Enum):  # noqa: UP042  StrEnum has other texts
    RED = "red"
    BLUE = "blue"


def test_members_of_an_enum_are_their_texts():
    """numpy once kept the first letter of the name of the class."""
    vocabulary = Vocabulary(list(Colour))
    assert repr(vocabulary.names) == "('red', 'blue')"
    assert vocabulary.ids(np.array(["blue", "red"])).tolist() == [1, 0]
    assert vocabulary.strings(np.array([1])).tolist() == ["blue"]
