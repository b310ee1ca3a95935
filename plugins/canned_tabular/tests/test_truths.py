"""Truth values with empty rows: each value is one category, as any file, table or client writes it."""

import json

import numpy as np
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
from estimator_canned_tabular.cli.described import described
from estimator_canned_tabular.cli.features import wide_columns
from estimator_canned_tabular.cli.profile import ColumnProfile
from estimator_canned_tabular.cli.schema import Schema
from estimator_canned_tabular.cli.unknown_words import UnknownWords
from estimator_canned_tabular.host.plan import FeaturePlan
from estimator_core._cli.main import main
from estimator_core.errors import InputError

#: The spellings in training files.
TRAINED = {"pandas": (b"True", b"False"), "Arrow": (b"true", b"false"), "sheet": (b"TRUE", b"FALSE")}
#: True, no value, False.
SAME = {
    "pandas": np.array(["True", "", "False"]),
    "Arrow": np.array([b"true", b"", b"false"], object),
    "sheet": np.array(["TRUE", None, "FALSE"], object),
    "objects": np.array([True, None, False], object),
    "objects of numpy": np.array([np.bool_(True), np.nan, np.bool_(False)], object),
    "nullable": np.array([1.0, np.nan, 0.0]),
}


def schema_of(words, **options):
    profile, label = ColumnProfile(), ColumnProfile()
    profile.add([*words, b""] * 20)
    label.add([b"a", b"b"] * 30)
    profiles = {"on": profile, "y": label}
    schema = Schema.inferred(profiles, "y", **options)
    assert not any("read as words" in line for line in described(schema, profiles))
    return schema


@pytest.mark.parametrize("form", SAME)
@pytest.mark.parametrize("trained", TRAINED)
def test_every_form_is_the_same_truth_value(trained, form):
    yes, no = TRAINED[trained]
    schema = schema_of([yes, no])
    (made,) = wide_columns(schema)
    assert schema.columns["on"].words == (no.decode(), yes.decode())
    assert made.host_ids({"on": SAME[form]}).ids.tolist() == [[1], [-1], [0]]
    assert made.host_ids({"on": np.array([True, False])}).ids.tolist() == [[1], [0]]
    (rule,) = FeaturePlan.of([made]).word_rules().values()
    assert rule.fault(SAME[form], None) is None
    assert made.tokens == (no, yes)  # the values that export formats other than stablehlo know
    words = UnknownWords(schema)
    words.look({"on": np.array([b"TRUE"], object)})
    assert list(words.told("test rows")) == []


def test_spellings_of_one_value_are_counted_together():
    found = schema_of([b"true", b"True", b"TRUE", b"False"], missing_category=True)
    assert found.columns["on"].words == ("False", "true")
    (made,) = wide_columns(found)
    assert made.host_ids({"on": SAME["sheet"]}).ids.tolist() == [[1], [-1], [0]]
    assert made.num_buckets == 4
    assert schema_of([b"True", b"yes"]).columns["on"].truths is False


@pytest.mark.parametrize("given", [np.array(["true", "yes"]), np.array(["true", "1"]), np.array([1.0, 0.5])])
def test_another_value_is_refused(given):
    (made,) = wide_columns(schema_of([b"True", b"False"]))
    with pytest.raises(tab.FeatureColumnError, match=r"it is not a truth value|must hold strings"):
        made.host_ids({"on": given})
    estimator = tab.LinearClassifier([made])
    with pytest.raises(
        InputError, match=r"in row 1: it is not a truth value that the column can read. Write it as true"
    ):
        estimator.train(ec.inputs.numpy_input_fn({"on": given}, np.array([0, 1]), batch_size=2, shuffle=False))


@pytest.mark.plugins
@pytest.mark.libraries
@pytest.mark.parametrize("trained", ["csv", pytest.param("parquet", marks=pytest.mark.slow)])
def test_every_door_reads_the_same_truth_value(tmp_path, trained):
    """A model is trained on CSV or Parquet, scores these and JSON lines, is served, and reads a DataFrame."""
    pd = pytest.importorskip("pandas")
    from estimator_exporters.serving.repository import Source
    from estimator_inputs import pandas_input_fn
    from plugins.exporters.tests.live_server import running

    on = pd.array([True, False, None] * 20, "boolean")
    frame = pd.DataFrame({"on": on, "label": ["yes", "no", "yes", "yes", "no", "no"] * 10})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "rows.jsonl").write_text('{"on": "true"}\n{"on": "FALSE"}\n{"on": null}\n')
    model = tmp_path / "model"
    quick = ["--model", "linear", "--epochs", "5", "--patience", "0", "--no-plots", "--no-baselines"]
    given = ["--rows", str(tmp_path / f"rows.{trained}"), "--label", "label", "--model-dir", str(model)]
    assert main(["tabular", "train", *given, *quick]) == 0
    found = {}
    for kind in ("csv", "parquet", "jsonl"):
        scored = tmp_path / f"scored.{kind}.jsonl"
        rows = [str(tmp_path / f"rows.{kind}"), "--output", str(scored), "--signature", "predict"]
        assert main(["predict", str(model / "export"), "--input", *rows]) == 0
        found[kind] = [json.loads(line)["probabilities_yes"] for line in scored.read_text().splitlines()[:3]]
    assert found["csv"] == found["parquet"] == found["jsonl"]
    assert len(set(found["csv"])) == 3
    (made,) = wide_columns(Schema.read(model / "columns.json"))
    for column in (on, on.astype(object)):
        features = pd.DataFrame({"on": column})
        batch = next(pandas_input_fn(features, batch_size=3, shuffle=False)())
        assert made.host_ids(batch).ids.reshape(-1).tolist() == [1, 0, -1]
    with running(sources=[Source(name="m", directory=model / "export")]) as server:
        ask = {"signature_name": "predict", "instances": [{"on": "True"}, {"on": "false"}, {"on": ""}]}
        status, _, answer = server.request("POST", "/v1/models/m:predict", ask)
        assert status == 200, answer
        np.testing.assert_allclose([row["probabilities"][1] for row in answer["predictions"]], found["csv"], rtol=1e-6)
        ask["instances"][1] = {"on": "off"}
        status, _, answer = server.request("POST", "/v1/models/m:predict", ask)
        assert status == 400
        assert "'off' in row 1: it is not a truth value" in answer["error"]


def weight_of(model_dir):
    return ec.load_variables(str(model_dir))["linear/linear_model/x/weights"].item()


@pytest.mark.plugins
@pytest.mark.libraries
def test_a_label_of_truth_values_has_the_same_classes_from_every_file(tmp_path, capsys):
    """A model is trained on one kind of file and tested on another. The classes are those of arrays of truth values."""
    pd = pytest.importorskip("pandas")
    numbers = np.random.default_rng(0).normal(size=60)
    frame = pd.DataFrame({"x": numbers, "label": numbers > 0})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.assign(label=np.where(frame["label"], "TRUE", "FALSE")).to_csv(tmp_path / "sheet.csv", index=False)
    quick = ["--model", "linear", "--epochs", "1", "--patience", "0", "--no-plots", "--no-baselines", "--no-export"]
    found = {}
    for trained, tested in [("rows.csv", "rows.parquet"), ("rows.parquet", "sheet.csv"), ("sheet.csv", "rows.csv")]:
        model = tmp_path / trained.replace(".", "_")
        given = ["--rows", str(tmp_path / trained), "--eval-csv", str(tmp_path / tested), "--model-dir", str(model)]
        assert main(["tabular", "train", *given, "--label", "label", *quick]) == 0
        told = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("classes:", "linear", "maj"))]
        found[trained] = [Schema.read(model / "columns.json").classes, *told]
    assert found["rows.csv"][0] == ("False", "True")
    assert f"True {int(frame['label'].sum())} (" in found["rows.csv"][1]
    assert found["rows.csv"] == found["rows.parquet"] == found["sheet.csv"]
    edited = tmp_path / "columns.json"
    edited.write_text(json.dumps(json.loads((model / "columns.json").read_text()) | {"classes": ["True", "False"]}))
    weights = {"usual": weight_of(model)}
    for rows in ("rows.csv", "rows.parquet", "sheet.csv"):
        given = ["--rows", str(tmp_path / rows), "--eval-csv", str(tmp_path / rows), "--columns", str(edited)]
        given += ["--model-dir", str(tmp_path / f"of_{rows}"), "--label", "label"]
        assert main(["tabular", "train", *given, *quick]) == 0
        weights[rows] = weight_of(tmp_path / f"of_{rows}")
    assert weights["rows.csv"] == weights["rows.parquet"] == weights["sheet.csv"] == -weights["usual"] != 0
