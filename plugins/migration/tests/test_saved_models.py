"""Tests that SavedModels of TensorFlow 2.15.1 and 1.15.0 are read without TensorFlow.

`record_saved_models.py` writes these SavedModels.
"""

import base64
import json
import re
import runpy
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.cli import main
from estimator_core.errors import ArgumentError, CheckpointCorruptError, InputError
from estimator_migration import read_saved_model, receiver_source
from estimator_migration.savedmodels.records import ExampleFeature, SavedModel, Signature, Tensor, Vocabulary
from estimator_migration.savedmodels.report import text_report

RECORDED = Path(__file__).parent / "recorded" / "saved_models"
MODELS = sorted(path.parent for path in RECORDED.glob("*/*/saved_model.pb"))
VERSIONS = ("1.15.0", "2.15.1")


def expected(place: Path) -> dict[str, Any]:
    return json.loads((place / "expected.json").read_text())


def receiver(place: Path, folder: Path) -> Any:
    assert main(["migrate", "savedmodel", str(place), "--receiver", str(folder / "receiver.py")]) == 0
    return runpy.run_path(str(folder / "receiver.py"))


def test_all_are_there() -> None:
    assert [f"{path.parent.name}/{path.name}" for path in MODELS] == [
        *(f"1.15.0/{name}" for name in ("classifier", "own_names", "raw")),
        *(f"2.15.1/{name}" for name in ("classifier", "functions", "own_names", "raw")),
    ]


@pytest.mark.parametrize("place", MODELS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_signatures_are_those_that_tensorflow_reads(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "savedmodel", str(place), "--json"]) == 0
    (graph,) = json.loads(capsys.readouterr().out)["graphs"]
    assert graph["tensorflow"] == place.parent.name
    assert graph["tags"] == ["serve"]
    found = {
        name: {
            side: {key: {"dtype": one["dtype"], "shape": one["shape"]} for key, one in signature[side].items()}
            for side in ("inputs", "outputs")
        }
        for name, signature in graph["signatures"].items()
    }
    there = expected(place)["signatures"]
    methods = {name: one.pop("method") for name, one in there.items()}
    assert found == there
    for name, method in methods.items():
        assert method == f"tensorflow/serving/{graph['signatures'][name]['method']}"


@pytest.mark.parametrize("version", VERSIONS)
def test_features_vocabularies_and_assets(version: str) -> None:
    (graph,) = read_saved_model(RECORDED / version / "classifier").graphs
    (parsing,) = graph.parsings
    kinds = {name: (one.kind, one.dtype, one.shape, one.default) for name, one in parsing.features.items()}
    assert kinds == {
        "age": ("fixed", "float32", (1,), [0.5]),
        "city": ("any number", "string", (), None),
        "code": ("any number", "int64", (), None),
        "color": ("any number", "string", (), None),
        "pair": ("fixed", "float32", (2,), None),
    }
    city, color, label = graph.vocabularies
    assert (city.feature, city.asset, city.size, city.buckets) == ("city", "cities.txt", 3, 2)
    assert (color.feature, color.words, color.buckets, color.default) == ("color", ("red", "green", "blue"), 0, -1)
    assert (label.feature, label.words, label.outputs) == (None, ("no", "yes"), ("predict/classes",))
    assert graph.assets == ("cities.txt",)


def test_the_text_report(capsys: pytest.CaptureFixture[str]) -> None:
    place = RECORDED / "2.15.1" / "classifier"
    assert main(["migrate", "savedmodel", str(place)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{place}: TensorFlow 2.15.1, serve"
    assert {
        "signature serving_default (classify)",
        "  returns scores: float32 [?, 2]",
        "  age: float32 [1], default [0.5]",
        "  color: any number of string",
        "  pair: float32 [2], required",
        "vocabulary of city: the file assets/cities.txt, 3 words; 2 buckets for other words",
        "vocabulary of color: 3 words: red, green, blue; other words: -1",
        "assets: cities.txt",
    } <= set(lines)


def test_the_text_report_names_a_vocabulary_of_two_parts_once() -> None:
    """A wide and a deep part have a table each."""
    model = read_saved_model(RECORDED / "2.15.1" / "classifier")
    (graph,) = model.graphs
    twice = replace(model, graphs=(replace(graph, vocabularies=graph.vocabularies * 2),))
    assert text_report(twice) == text_report(model)


@pytest.mark.plugins
@pytest.mark.parametrize(
    "version", [pytest.param(each, marks=() if each == VERSIONS[-1] else pytest.mark.slow) for each in VERSIONS]
)
def test_a_classifier_served_by_the_receiver_answers_as_tensorflow(version: str, tmp_path: Path) -> None:
    tabular = pytest.importorskip("estimator_canned_tabular")
    place = RECORDED / version / "classifier"
    written = receiver(place, tmp_path)
    words = written["VOCABULARIES"]
    color = tabular.categorical_column_with_vocabulary_list("color", words["color"])
    city = tabular.categorical_column_with_vocabulary_file("city", words["city"], 3, num_oov_buckets=2)
    code = tabular.categorical_column_with_identity("code", 5, default_value=0)
    estimator = tabular.DNNClassifier(
        [4],
        [
            *(tabular.numeric_column("age", default_value=0.5), tabular.numeric_column("pair", shape=(2,))),
            *(tabular.indicator_column(color), tabular.embedding_column(city, 2), tabular.indicator_column(code)),
        ],
        label_vocabulary=written["LABEL_VOCABULARY"],
        optimizer=lambda: optax.sgd(0.0),
        warm_start_from=str(place / "variables" / "variables"),
        config=ec.RunConfig(model_dir=str(tmp_path / "run"), default_hooks=False),
    )
    features = {
        "age": np.ones((2, 1), np.float32),
        "pair": np.ones((2, 2), np.float32),
        "color": np.array([["red", "green"], ["blue", ""]]),
        "city": np.array([["Rome"], ["Oslo"]]),
        "code": np.array([[1], [2]]),
    }
    labels = np.array(["yes", "no"])
    estimator.train(ec.inputs.numpy_input_fn(features, labels, batch_size=2, num_epochs=1, shuffle=False))
    export = ec.export.load(estimator.export_saved_model(tmp_path / "exports", written["serving_input_receiver_fn"]))
    there = expected(place)
    assert set(export.raw_signatures) == set(there["signatures"])
    for name, signature in there["signatures"].items():
        assert set(export.raw_signatures[name].outputs) == set(signature["outputs"]), name
    records = np.array([base64.b64decode(one) for one in there["examples"]], object)
    answers = export.raw_signatures["predict"](examples=records)
    for name, value in there["answers"].items():
        found = np.reshape(answers[name], (len(records), -1))
        if name.endswith("classes"):
            text = [[word.decode() if isinstance(word, bytes) else word for word in row] for row in found.tolist()]
            assert text == value, name
        else:
            np.testing.assert_allclose(found, value, rtol=0, atol=1e-6, err_msg=name)


@pytest.mark.plugins
@pytest.mark.parametrize("version", VERSIONS)
def test_records_of_another_name_and_a_second_receiver(version: str, tmp_path: Path) -> None:
    place = RECORDED / version / "own_names"
    written = receiver(place, tmp_path)
    made = written["serving_input_receiver_fn"]()
    assert dict(made.receiver_tensors) == {"clients": ec.export.Feature((None,), "string")}
    records = np.array([base64.b64decode(one) for one in expected(place)["examples"]], object)
    rename, parse = made.transforms
    with pytest.raises(InputError, match="'steps' has 2 values"):
        parse.apply(rename.apply({"clients": records}))
    batch = parse.apply(rename.apply({"clients": records[1:]}))
    assert batch["grid"].tolist() == [[[1.0, 2.0], [3.0, 4.0]]]
    assert batch["grid"].sum() == expected(place)["answers"]["total"][1][0]
    others = [value for name, value in written.items() if name.startswith("make_")]
    assert len(others) == sum(name.startswith("other:") for name in expected(place)["signatures"])
    for other in others:
        assert other(grid_1=2)().features == {"grid": ec.export.Feature((None, 2, 2), "float32")}


def test_raw_features(tmp_path: Path) -> None:
    written = receiver(RECORDED / "1.15.0" / "raw", tmp_path)
    assert written["serving_input_receiver_fn"]().features == {
        "n": ec.export.Feature((None, 1), "int32"),
        "x": ec.export.Feature((None, 2), "float32"),
    }


def test_a_model_without_an_estimator(tmp_path: Path) -> None:
    model = read_saved_model(RECORDED / "2.15.1" / "functions")
    features = model.graphs[0].parsings[0].features
    assert {name: one.kind for name, one in features.items()} == {"word": "fixed", "rows": "ragged"}
    source = receiver_source(model)
    assert "# MIGRATE: free sizes are fixed here: ids_1." in source
    assert "# MIGRATE: rows was a RaggedTensor" in source


def test_a_part_of_a_file_is_refused_at_every_length(tmp_path: Path) -> None:
    whole = (RECORDED / "2.15.1" / "raw" / "saved_model.pb").read_bytes()
    for length in [*range(0, 64), *range(64, len(whole), 97), len(whole) - 1]:
        (tmp_path / "saved_model.pb").write_bytes(whole[:length])
        with pytest.raises(CheckpointCorruptError, match=r"saved_model.pb is not a SavedModel, or only a part of one"):
            read_saved_model(tmp_path)


def test_altered_bytes_never_end_in_another_error(tmp_path: Path) -> None:
    whole = bytearray((RECORDED / "2.15.1" / "raw" / "saved_model.pb").read_bytes())
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        altered = bytearray(whole)
        for place in rng.integers(0, len(whole), 4):
            altered[place] = rng.integers(256)
        (tmp_path / "saved_model.pb").write_bytes(bytes(altered))
        try:
            receiver_source(read_saved_model(tmp_path))
        except (CheckpointCorruptError, ArgumentError):
            refused += 1
    assert 0 < refused < 300


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (None, r"There is no directory"),
        ("empty/file.txt", r"holds no saved_model.pb\.$"),
        ("saved_model.pbtxt", r"as text, which cannot be read. Export it again without as_text=True"),
        ("1700000000/saved_model.pb", r"holds no saved_model.pb. Its newest export is .*1700000000"),
    ],
)
def test_directories_that_hold_none(
    made: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "there"
    if made is not None:
        (place / made).parent.mkdir(parents=True)
        (place / made).write_bytes(b"")
    with pytest.raises(ArgumentError, match=said):
        read_saved_model(place)
    assert main(["migrate", "savedmodel", str(place)]) == 2
    assert re.search(said.removesuffix("$"), capsys.readouterr().err)


def test_a_receiver_that_is_there_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "receiver.py"
    kept.write_text("mine")
    command = ["migrate", "savedmodel", str(RECORDED / "1.15.0" / "raw"), "--receiver"]
    assert main([*command, str(kept)]) == 2
    assert "There is already a file" in capsys.readouterr().err
    assert kept.read_text() == "mine"
    assert main([*command, str(tmp_path / "absent" / "receiver.py")]) == 2
    assert "cannot be written: No such file" in capsys.readouterr().err


def test_an_export_of_a_moved_directory(tmp_path: Path) -> None:
    moved = tmp_path / "a folder"
    shutil.copytree(RECORDED / "1.15.0" / "classifier", moved)
    assert str(moved / "assets" / "cities.txt") in receiver_source(read_saved_model(moved))


def changed(**signatures: Signature) -> SavedModel:
    """Returns the model of functions with other signatures. Its graph hides the input of its only parser."""
    model = read_saved_model(RECORDED / "2.15.1" / "functions")
    return replace(model, graphs=(replace(model.graphs[0], signatures=signatures),))


def signature(**inputs: Tensor) -> Signature:
    return Signature(method="predict", inputs=inputs, outputs={})


def tensor(name: str, dtype: str = "string", shape: tuple[int | None, ...] = (None,)) -> Tensor:
    return Tensor(name=f"{name}:0", dtype=dtype, shape=shape)


def test_a_receiver_loads_whatever_names_and_defaults_there_are(tmp_path: Path) -> None:
    free = {"dtype": "float32", "shape": (None, None)}
    model = changed(
        **{
            "serving_default": signature(**{"in/a": tensor("x", **free), "in_a": tensor("y", **free)}),
            "my-sig": signature(p=tensor("p", "float32")),
            "my_sig": signature(q=tensor("q", "float32")),
            "serving_input": signature(r=tensor("r", "float32")),
            "two\nlines": signature(s=tensor("s", "float32")),
        }
    )
    for path in (model.path, 'C:\\Users\\new"""x"', "n\udce4m\u00e4"):
        source = receiver_source(replace(model, path=path))
        (tmp_path / "receiver.py").write_text(source, encoding="utf-8")
        written = runpy.run_path(str(tmp_path / "receiver.py"))
        assert path in written["__doc__"]
        made = written["make_serving_input_receiver_fn"](in_a_1=2, in_a_1_2=3)()
        assert {name: one.shape[1] for name, one in made.features.items()} == {"in/a": 2, "in_a": 3}
        for name, key in (("my_sig", "p"), ("serving_input", "r"), ("two_lines", "s")):
            assert list(written[f"{name}_receiver_fn{'_2' if key == 'r' else ''}"]().features) == [key]
        assert list(written["my_sig_receiver_fn_2"]().features) == ["q"]


@pytest.mark.plugins  # estimator-inputs
def test_defaults_that_are_no_numbers_and_files_from_the_root_on(monkeypatch: pytest.MonkeyPatch) -> None:
    model = changed(serving_default=signature(examples=tensor("a")))
    (graph,) = model.graphs
    features = {
        "x": ExampleFeature(kind="fixed", dtype="float32", shape=(2,), default=[float("nan"), 1.5]),
        "y": ExampleFeature(kind="fixed", dtype="float32", default=float("-inf")),
    }
    graph = replace(graph, parsings=(replace(graph.parsings[0], features=features),))
    words = Vocabulary(node="t", feature="city", outputs=(), asset="cities.txt")
    monkeypatch.chdir(RECORDED)
    written: dict[str, Any] = {}
    exec(receiver_source(SavedModel(path="here", graphs=(replace(graph, vocabularies=(words,)),))), written)
    assert np.isnan(written["FEATURES"]["x"].default_value[0])
    assert written["FEATURES"]["x"].default_value[1] == 1.5
    assert written["FEATURES"]["y"].default_value == -np.inf
    assert written["VOCABULARIES"] == {"city": str(RECORDED.resolve() / "here" / "assets" / "cities.txt")}


def test_a_hidden_parser_is_of_the_one_signature_that_takes_a_string(capsys: pytest.CaptureFixture[str]) -> None:
    parsed = receiver_source(changed(serving_default=signature(examples=tensor("a"))))
    assert "build_parsing_serving_input_receiver_fn(FEATURES)" in parsed
    assert "# MIGRATE: the graph does not show that 'examples' is what ParseExample/ParseExampleV2 parses" in parsed
    two = changed(serving_default=signature(examples=tensor("a")), text=signature(text=tensor("b")))
    mixed = changed(serving_default=signature(examples=tensor("a"), n=tensor("b", "float32")))
    for model, notes in ((two, 2), (mixed, 1)):
        source = receiver_source(model)
        assert "build_parsing_serving_input_receiver_fn(" not in source
        assert source.count("# MIGRATE: the graph parses tf.Examples in ParseExample/ParseExampleV2. If ") == notes
