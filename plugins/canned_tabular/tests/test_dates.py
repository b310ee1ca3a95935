"""A date is one category in every notation of a file or a client. Text that is not a date is refused by name."""

import datetime
import json
from dataclasses import replace

import numpy as np
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
from estimator_canned_tabular.cli.profile import ColumnProfile
from estimator_canned_tabular.cli.schema import Schema
from estimator_canned_tabular.cli.unknown_words import UnknownWords
from estimator_canned_tabular.host.transform import FeatureIds
from estimator_core._cli.main import main
from estimator_core.errors import ArgumentError, ExportError, InputError

DAYS = ["1970-01-01", "1971-06-30"]
#: The second day of the list, in several notations.
SAME = {
    "as it is": "1971-06-30",
    "pandas": "1971-06-30 00:00:00",
    "Arrow": "1971-06-30 00:00:00.000000",
    "numpy": "1971-06-30T00:00:00.000000000",
    "JavaScript": "1971-06-30T00:00:00.000Z",
    "a zone": "1971-06-30T02:00:00+02:00",
    "Arrow with a zone": "1971-06-30 00:00:00.000000Z",
    "minutes": "1971-06-30T00:00",
    "bytes": b"1971-06-30",
    "numpy's moment": np.datetime64("1971-06-30T00:00"),
    "Python's date": np.datetime64("1971-06-30").astype(object),
    "Python's moment": np.datetime64("1971-06-30", "s").astype(object),
}
OTHERS = ["30/06/1971", "06/30/71", "Jun 30 1971", "1971-06-31", "1971-6-30", "47260800000", "unknown", "19710630"]


def column(**options):
    return tab.categorical_column_with_vocabulary_list("day", DAYS, num_oov_buckets=1, dates=True, **options)


def ids(made, values):
    return made.host_ids({"day": np.array(values, object)}).ids.reshape(-1).tolist()


@pytest.mark.parametrize("form", SAME)
def test_every_form_is_the_same_date(form):
    assert ids(column(), ["1970-01-01", SAME[form], None, "1999-12-31"]) == [0, 1, -1, 2]
    hashed = tab.categorical_column_with_hash_bucket("day", 1000, dates=True)
    assert len(set(ids(hashed, [SAME[form], "1971-06-30"]))) == 1


@pytest.mark.parametrize("value", [np.datetime64("1971-06-30"), datetime.date(1971, 6, 30)])
@pytest.mark.parametrize("batch", [lambda value: np.array([value]), lambda value: np.array([value], object)])
def test_a_column_that_takes_no_dates_names_the_option(value, batch, tmp_path):
    days = tab.categorical_column_with_hash_bucket("day", 10)
    estimator = tab.LinearClassifier([days], str(tmp_path))
    told = "it is a date, but the column of words 'day' takes strings.*. Give the column dates=True, or write it as"
    with pytest.raises(InputError, match=rf"^Feature 'day' holds '?.*1971.*: {told}"):
        estimator.train(lambda: [({"day": batch(value)}, np.array([0]))])


def test_an_array_of_moments():
    days = np.array(["1971-06-30", "NaT", "1970-01-01"], "datetime64[ns]")
    assert column().host_ids({"day": days}).ids.tolist() == [[1], [-1], [0]]
    cross = tab.crossed_column([column(), "other"], 50)
    words = np.array(["a", "a", "a"])
    found = cross.host_ids({"day": days, "other": words}).ids
    assert (
        found.tolist()
        == cross.host_ids({"day": np.array(["1971-06-30", "", "1970-01-01"]), "other": words}).ids.tolist()
    )


@pytest.mark.parametrize("text", OTHERS)
def test_another_text_is_refused_by_row_and_value(text):
    message = (
        rf"Feature 'day' holds '{text}' in row 1: it is not a date that the column can read. Write it as 2024-01-31"
    )
    with pytest.raises(tab.FeatureColumnError, match=message):
        column().host_ids({"day": np.array(["1970-01-01", text], object)})
    features = {"day": np.array(["1970-01-01", text], object)}
    estimator = tab.LinearClassifier([column()])
    with pytest.raises(InputError, match=message):
        estimator.train(ec.inputs.numpy_input_fn(features, np.array([0, 1]), batch_size=2, shuffle=False))


def test_times_are_kept_apart():
    made = tab.categorical_column_with_vocabulary_list(
        "day", ["2024-01-31 09:30", "2024-01-31", "2024-01-31T09:30:00.5"], dates=True
    )
    given = ["2024-01-31T09:30:00Z", "2024-01-31T00:00", "2024-01-31 09:30:00.500000", "2024-01-31T09:30:00.25"]
    assert ids(made, given) == [0, 1, 2, -1]


@pytest.mark.parametrize(
    ("days", "options", "message"),
    [
        (["1970-01-01", "May"], {}, "'May' of vocabulary_list is not a date, column_name: day"),
        (["1970-01-01", "1970-01-01T00:00Z"], {}, "'1970-01-01T00:00Z' of vocabulary_list is repeated in another form"),
        ([1, 2], {}, "dates=True is for strings, but dtype is int64"),
    ],
)
def test_lists_that_hold_no_dates(days, options, message):
    with pytest.raises(ArgumentError, match=message):
        tab.categorical_column_with_vocabulary_list("day", days, dates=True, **options)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (column(), "The dates of 'day' are converted to one form first.* train with dates=False"),
        (column(max_values=3, missing_bucket=True), "The dates of 'day' are converted"),
        (tab.categorical_column_with_hash_bucket("day", 9, dates=True), "The dates of 'day' are converted"),
        (tab.crossed_column([column(), "other"], 9), "The dates of 'day' are converted"),
        (
            replace(tab.categorical_column_with_vocabulary_list("day", ["true", "false"]), truths=True),
            "The truth values of 'day' are converted to one form first.* train with truths=False",
        ),
    ],
)
def test_a_format_without_an_operation_for_spellings_refuses_them(made, told):
    """Without the refusal, another spelling would silently be an unknown word for the readers of a SavedModel."""
    transform = FeatureIds({"day": made}, drop=["day"])
    receiver = {name: ec.export.Feature((None,), "string") for name in ("day", "other")}
    with pytest.raises(ExportError, match=told):
        ec.export.host_programs([transform], receiver)


def inferred(*days):
    profile, label = ColumnProfile(), ColumnProfile()
    profile.add([day.encode() for day in days])
    label.add([b"0", b"1"] * len(days))
    return Schema.inferred({"day": profile, "y": label}, "y").columns["day"]


def test_a_column_of_dates_is_found():
    found = inferred("1970-01-01", "1970-01-01 00:00:00", "1971-06-30", "1971-06-30", "")
    assert (found.kind, found.dates, found.words) == ("vocabulary", True, ("1970-01-01", "1971-06-30"))
    assert not inferred("1970-01-01", "1970-01-01", "May", "May").dates
    assert not inferred("31/01/1970", "31/01/1970", "01/02/1970", "01/02/1970").dates
    words = UnknownWords(Schema(label="y", columns={"day": found}))
    words.look({"day": np.array([b"1970-01-01T00:00:00Z"], object)})
    assert list(words.told("test rows")) == []


@pytest.mark.plugins
@pytest.mark.libraries
def test_every_door_reads_the_same_date(tmp_path, capsys):
    """A model that is trained on CSV is scored from CSV, Parquet and JSON lines, and served."""
    pd = pytest.importorskip("pandas")
    from estimator_exporters.serving.repository import Source
    from plugins.exporters.tests.live_server import running

    days = np.array(["1970-01-01", "1971-06-30", "1972-02-29"] * 20)
    other = pd.to_datetime(days).strftime("%d/%m/%Y")
    frame = pd.DataFrame({"day": days, "other": other, "label": np.where(days == "1971-06-30", "mid", "rest")})
    csv, model = tmp_path / "rows.csv", tmp_path / "model"
    frame.to_csv(csv, index=False)
    moments = frame.assign(day=pd.to_datetime(frame["day"]))
    moments.to_parquet(tmp_path / "rows.parquet")
    moments.to_json(tmp_path / "rows.jsonl", orient="records", lines=True, date_format="iso")
    quick = ["--model", "linear", "--epochs", "5", "--patience", "0", "--no-plots", "--no-baselines"]
    assert main(["tabular", "train", "--csv", str(csv), "--label", "label", "--model-dir", str(model), *quick]) == 0
    said = capsys.readouterr().out
    assert (
        "read as words: other, with dates such as '01/01/1970'. Every file and request must write them this way."
        in said
    )
    assert "read as words: day" not in said
    found = {}
    for kind in ("csv", "parquet", "jsonl"):
        scored = tmp_path / f"scored.{kind}.jsonl"
        given = [str(tmp_path / f"rows.{kind}"), "--output", str(scored), "--signature", "predict"]
        assert main(["predict", str(model / "export"), "--input", *given]) == 0
        found[kind] = [json.loads(line)["probabilities_mid"] for line in scored.read_text().splitlines()]
    assert found["csv"] == found["parquet"] == found["jsonl"]
    assert len(set(found["csv"])) == 3
    with running(sources=[Source(name="m", directory=model / "export")]) as server:
        asked = [
            {"day": day, "other": other}
            for day, other in zip(
                ("1970-01-01T00:00:00.000Z", "1971-06-30 00:00:00", "1972-02-29"), other, strict=False
            )
        ]
        status, _, answer = server.request(
            "POST", "/v1/models/m:predict", {"signature_name": "predict", "instances": asked}
        )
        assert status == 200, answer
        np.testing.assert_allclose(
            [row["probabilities"][0] for row in answer["predictions"]], found["csv"][:3], rtol=1e-5
        )
        asked[1] |= {"day": "30/06/1971"}
        status, _, answer = server.request(
            "POST", "/v1/models/m:predict", {"signature_name": "predict", "instances": asked}
        )
        assert status == 400
        assert "Feature 'day' holds '30/06/1971' in row 1: it is not a date" in answer["error"]
