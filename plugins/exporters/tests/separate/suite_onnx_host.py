"""Tests of ONNX graphs with the host part inside, from raw strings to class names, and of refused host parts."""

import importlib.util
import json
import re
import tempfile

import numpy as np
import onnxruntime
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
from estimator_canned_tabular.hashing import cross_fingerprints, fingerprint64
from estimator_core.errors import ExportError
from estimator_core.export import (
    Bucketize,
    Cross,
    EqualLengths,
    Fit,
    FullLengths,
    HashBucket,
    HostProgram,
    Lengths,
    Lookup,
    Reshape,
    Within,
)
from estimator_exporters.onnx.extensions import library
from estimator_exporters.onnx.hashes import EXTENSIONS, PACKAGE
from estimator_exporters.onnx.host import run_programs
from estimator_exporters.onnx.load import session
from estimator_exporters.onnx.nodes import Nodes, Value
from plugins.exporters.tests.separate.raw_journey import AGE, BUCKETS, CITY, SENT, classifier, export, rows


@pytest.fixture(scope="module")
def exported():
    estimator = classifier()
    return estimator, export(estimator, tempfile.mkdtemp())


def needed(path, signature):
    return json.loads((path / "manifest.json").read_text())["raw_signatures"][signature]["needs"]


def graph_of(path, signature):
    described = json.loads((path / "manifest.json").read_text())["raw_signatures"][signature]
    options = onnxruntime.SessionOptions()
    if described["needs"]:
        options.register_custom_ops_library(library())
    session = onnxruntime.InferenceSession(str(path / described["program"]), options, ["CPUExecutionProvider"])
    assert {one.name for one in session.get_inputs()} == set(described["inputs"])
    names = [one.name for one in session.get_outputs()]
    assert set(names) == set(described["outputs"])
    return lambda sent: dict(zip(names, session.run(names, sent), strict=True))


@pytest.mark.parametrize("count", [1, 64])
def test_raw_rows_are_predicted_as_by_the_estimator(exported, count):
    estimator, path = exported
    features = rows(count)
    assert set(features) == set(SENT)
    found = graph_of(path, "predict")(features)
    predicted = list(estimator.predict(lambda: [features]))
    for name, value in found.items():
        expected = np.stack([row[name] for row in predicted])
        if value.dtype == object:
            assert value.tolist() == expected.tolist()
        else:
            np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5)
    assert set(np.ravel(found["classes"])) <= {"young", "älter", "old"}


def test_the_raw_signature_of_our_reader_is_the_same(exported):
    _, path = exported
    features = rows(16)
    ours = ec.export.load(path).raw_signatures["classification"](**features)
    found = graph_of(path, "classification")(features)
    np.testing.assert_allclose(found["scores"], ours["scores"], rtol=1e-5, atol=1e-5)
    assert found["classes"].tolist() == ours["classes"].tolist()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            tab.categorical_column_with_vocabulary_list("tags", ["red"], max_values=1),
            "2 places, but its column has 1: a graph cannot refuse",
        ),
    ],
)
def test_what_a_graph_does_not_hold_is_refused_by_name(tmp_path, column, message):
    features = {**rows(4), "tags": np.array([["red", ""]] * 4, object)}
    estimator = tab.LinearClassifier([column], config=ec.RunConfig(default_hooks=False, save_summary_steps=0))
    estimator.train(lambda: [(features, np.ones((4, 1), np.int64))])
    sent = {name: SENT[name] for name in ("age", *column.parse_example_spec)}
    with pytest.raises(ExportError, match=message):
        export(estimator, tmp_path / "export", sent)
    assert not list(tmp_path.glob("export/*"))


HASHES = {
    "hash buckets": lambda: tab.categorical_column_with_hash_bucket("city", 9),
    "hash buckets of integers": lambda: tab.categorical_column_with_hash_bucket("day", 9, dtype="int64"),
    "a cross of text": lambda: tab.crossed_column(["city", BUCKETS, "tags"], 9),
    "hashed unknown words": lambda: tab.categorical_column_with_vocabulary_list("city", ["Rome"], num_oov_buckets=3),
}


@pytest.mark.parametrize("kind", HASHES)
def test_hashes_are_in_the_graph_and_what_they_need_is_named(tmp_path, kind):
    features, column = rows(64), HASHES[kind]()
    estimator = tab.LinearClassifier([column], config=ec.RunConfig(default_hooks=False, save_summary_steps=0))
    estimator.train(lambda: [(features, (features["age"] > 40).astype(np.int64)[:, None])] * 3)
    path = export(estimator, tmp_path / "export", {name: SENT[name] for name in column.parse_example_spec})
    assert needed(path, "predict") == [PACKAGE]
    sent = {name: features[name] for name in column.parse_example_spec}
    found = graph_of(path, "predict")(sent)
    expected = np.stack([row["logits"] for row in estimator.predict(lambda: [features])])
    assert len(np.unique(expected.round(6))) > 2
    np.testing.assert_allclose(found["logits"], expected, rtol=1e-5, atol=1e-5)


def test_without_the_extensions_hashes_are_refused_by_name_and_other_columns_are_not(tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name.endswith("extensions") else found(name))
    config = ec.RunConfig(default_hooks=False, save_summary_steps=0)
    features = rows(4)
    for column, refused in ((CITY, False), (HASHES["hash buckets"](), True)):
        estimator = tab.LinearClassifier([column], config=config)
        estimator.train(lambda: [(features, np.ones((4, 1), np.int64))])
        sent, folder = {"city": SENT["city"]}, tmp_path / str(refused)
        if refused:
            with pytest.raises(ExportError, match=r"need onnxruntime-extensions.*estimator-exporters\[onnx-hashes\]"):
                export(estimator, folder, sent)
            assert not list(folder.glob("*"))
        else:
            assert needed(export(estimator, folder, sent), "predict") == []


def test_tf_examples_are_refused_by_name(tmp_path):
    estimator = classifier(deep=[AGE], wide=[BUCKETS])
    receiver = tab.columns_receiver_fn([AGE])
    with pytest.raises(ExportError, match=r"no operation for ParseExamples .*build_raw_serving_input_receiver_fn"):
        estimator.export_saved_model(str(tmp_path), receiver, format="onnx")


def run(operations, outputs, values):
    """The values of a program of one example each. numpy arrays of objects are text."""
    import onnx

    nodes = Nodes()
    dtypes = {name: "string" if array.dtype == object else str(array.dtype) for name, array in values.items()}
    batch = {name: Value(name, array.shape[1:], dtypes[name]) for name, array in values.items()}
    program = HostProgram(operations=tuple(operations), outputs={name: name for name in outputs})
    found = run_programs(nodes, [program], batch)
    graph = onnx.helper.make_graph(
        [*nodes.written, *(onnx.helper.make_node("Identity", [found[name].name], [f"out {name}"]) for name in outputs)],
        "host",
        [
            onnx.helper.make_tensor_value_info(
                name, 8 if dtypes[name] == "string" else onnx.helper.np_dtype_to_tensor_dtype(array.dtype), None
            )
            for name, array in values.items()
        ],
        [onnx.helper.make_empty_tensor_value_info(f"out {name}") for name in outputs],
        initializer=nodes.constants,
    )
    versions = {"": 21, "ai.onnx.ml": 4, EXTENSIONS: 1}
    opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in versions.items()]
    model = onnx.helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 10
    return session(model.SerializeToString(), [PACKAGE]).run([f"out {name}" for name in outputs], values)


def test_single_operations():
    """Every operation by itself, on values that include missing ones."""
    text = np.array([["b", ""], ["?", "a"]], object)
    whole = np.array([[7, -1], [2, 0]])
    number = np.array([[0.5, np.nan], [-1.0, 2.0]], np.float32)
    found = run(
        [
            Lookup(input="text", output="places", words=(b"a", b"b"), otherwise=5),
            Within(input="whole", output="inside", count=3, otherwise=1),
            Bucketize(input="number", output="buckets", boundaries=(0.0, 2.0)),
            Fit(input="text", output="wide", width=3, fill=b""),
            Lengths(input="text", output="lengths"),
            FullLengths(input="number", output="full", steps=4),
            EqualLengths(inputs=("lengths", "full")),
            Reshape(input="whole", output="flat", shape=(2, 1)),
        ],
        ["places", "inside", "buckets", "wide", "lengths", "full", "flat"],
        {"text": text, "whole": whole, "number": number},
    )
    assert [one.tolist() for one in found] == [
        [[1, -1], [5, 0]],
        [[1, -1], [2, 0]],
        [[1, 5], [0, 5]],
        [["b", "", ""], ["?", "a", ""]],
        [1, 2],
        [4, 4],
        [[[7], [-1]], [[2], [0]]],
    ]


def test_an_unknown_word_of_a_cross_is_a_value_and_a_missing_one_is_none():
    from estimator_canned_tabular import (
        categorical_column_with_identity,
        categorical_column_with_vocabulary_list,
        crossed_column,
    )
    from estimator_canned_tabular.host.operations import Operations, ids_of
    from estimator_core.export import Feature

    word = categorical_column_with_vocabulary_list("word", ["a", "b"])
    crossed = crossed_column([word, categorical_column_with_identity("code", 4)], 1000)
    batch = {"word": np.array([["a"], ["strange"], [""]], object), "code": np.array([[1], [2], [3]])}
    operations = Operations({"word": Feature((None, 1), "string"), "code": Feature((None, 1), "int64")})
    made = ids_of(crossed, operations).ids
    (found,) = run(operations.written, [made.name], batch)
    assert found.tolist() == crossed.host_ids(batch).ids.tolist()
    assert (found[:, 0] < 0).tolist() == [False, False, True]


def test_fingerprints_of_text_of_every_length_are_those_of_the_columns():
    generator = np.random.default_rng(0)
    letters = np.array([*"abc xyzÅß中😀"])
    texts = ["", *("".join(generator.choice(letters, length)) for length in range(1, 200)), "0", "-17", str(2**63 - 1)]
    text = np.array(texts, object)[:, None]
    whole = generator.integers(-(2**63), 2**63 - 1, text.shape)
    operations = [
        HashBucket(input="text", output="texts", buckets=2**31 - 1),
        HashBucket(input="whole", output="wholes", buckets=2**31 - 1),
        Cross(inputs=("text",), output="crossed", buckets=2**62, key=7, blanks=(None,)),
    ]
    found = run(operations, ["texts", "wholes", "crossed"], {"text": text, "whole": whole})
    hashes = fingerprint64([one.encode() for one in texts])
    digits = fingerprint64([str(one).encode() for one in whole.reshape(-1).tolist()])
    assert found[0][:, 0].tolist() == [-1, *(hashes[1:] % np.uint64(2**31 - 1)).tolist()]
    assert found[1][:, 0].tolist() == (digits % np.uint64(2**31 - 1)).tolist()
    assert found[2][:, 0].tolist() == (cross_fingerprints([hashes], 7) % np.uint64(2**62)).tolist()


def test_a_reader_with_another_hash_fails_and_says_what_to_install(monkeypatch):
    """Versions from 0.15 on answer, but with another hash. Here, the known answer is changed instead."""
    monkeypatch.setattr("estimator_exporters.onnx.hashes._KNOWN", (b"Fingerprint64", 1))
    operation = HashBucket(input="text", output="bucket", buckets=9)
    with pytest.raises(Exception, match=re.escape(f"install {PACKAGE}")):
        run([operation], ["bucket"], {"text": np.array([["a"]], object)})


@pytest.mark.parametrize("counts", [False, True])
def test_crosses_are_those_of_the_columns(counts):
    left, right = np.array([[3, -1, 2**40]]), np.array([[-1, 8]])
    blanks = (None, None) if counts else ("left", "right")
    cross = Cross(inputs=("left", "right"), output="x", buckets=1000, key=2**63 + 9, blanks=blanks)
    (found,) = run([cross], ["x"], {"left": left, "right": right})
    pairs = [np.repeat(left, 2, axis=1).astype(np.uint64), np.tile(right, (1, 3)).astype(np.uint64)]
    expected = (cross_fingerprints(pairs, 2**63 + 9) % np.uint64(1000)).astype(np.int64)
    blank = (np.repeat(left, 2, axis=1) == -1) | (np.tile(right, (1, 3)) == -1)
    assert found.tolist() == (expected if counts else np.where(blank, -1, expected)).tolist()
