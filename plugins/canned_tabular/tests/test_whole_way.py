"""The commands train, predict and serve return the same answer for every row, even for rows with holes."""

import json

import numpy as np
import pytest

from estimator_core._cli.main import main

pd = pytest.importorskip("pandas")
pytestmark = [pytest.mark.plugins, pytest.mark.libraries]


def with_holes(frame, label):
    """Removes a tenth of all cells except labels. Some rows lose every number."""
    rng = np.random.default_rng(0)
    holes = rng.random(frame.shape) < 0.1
    holes[7:9] = True
    holes[:, frame.columns.get_loc(label)] = False
    return frame.mask(holes)


def wine():
    """A table of numbers, whole numbers, words and truth values, with holes."""
    from sklearn.datasets import load_wine

    frame = load_wine(as_frame=True).frame.iloc[:, [0, 1, 6, 9, 12, 13]]
    colour = pd.cut(frame["color_intensity"], [0, 4, 6, 20], labels=["pale", "red", "très rouge, presque noir"])
    mixed = frame.assign(colour=colour.astype(object), strong=frame["alcohol"] > 13, number=np.arange(len(frame)) // 2)
    mixed["cultivar"] = np.array(["one", "two", "three"])[mixed.pop("target")]
    return with_holes(mixed.drop(columns="color_intensity"), "cultivar"), "cultivar"


def penguins():
    from palmerpenguins import load_penguins

    return load_penguins(), "species"


def cars():
    from vega_datasets import local_data

    return local_data.cars(), "Origin"  # the file has 1970-01-01, clients send 1970-01-01 00:00:00


def election():
    import statsmodels.api as sm

    frame = sm.datasets.anes96.load_pandas().data
    frame["vote"] = np.where(frame["vote"] > 0, "Dole", "Clinton")
    return with_holes(frame, "vote"), "vote"


def instances(frame, columns):
    """Rows as a client sends them. A missing value is null."""
    kinds = {name: one["kind"] for name, one in columns.items() if one["kind"] != "skip"}
    rows = [dict.fromkeys(kinds) for _ in range(len(frame))]
    for name, kind in kinds.items():
        for row, value in zip(rows, frame[name].tolist(), strict=True):
            if not pd.isna(value):
                row[name] = float(value) if kind == "numeric" else str(value)
    return rows


def whole_way(folder, frame, label, capsys, *sizes):
    """Runs every command once. Returns the answers for the file and from the server, and the evaluation."""
    from estimator_exporters.serving.repository import Source
    from plugins.exporters.tests.live_server import running

    table, model, scored = folder / "rows.csv", folder / "model", folder / "scored.jsonl"
    frame.to_csv(table, index=False)
    quick = ["--no-baselines", "--no-plots", *sizes]
    assert main(["tabular", "train", "--csv", str(table), "--label", label, "--model-dir", str(model), *quick]) == 0
    lines = [line.split(" = ") for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    evaluated = {name.strip(): float(value) for name, value in (line for line in lines if len(line) == 2)}
    export = str(model / "export")
    assert main(["predict", export, "--input", str(table), "--output", str(scored), "--signature", "predict"]) == 0
    read = [json.loads(line) for line in scored.read_text().splitlines()]
    columns = json.loads((model / "columns.json").read_text())
    request = {"signature_name": "predict", "instances": instances(frame, columns["columns"])}
    with running(sources=[Source(name="m", directory=model / "export")]) as server:
        status, _, answer = server.request("POST", "/v1/models/m:predict", request)
    assert status == 200, answer
    return read, answer["predictions"], evaluated, columns["classes"]


def compare(frame, label, found):
    read, served, evaluated, names = found
    assert len(read) == len(served) == len(frame)
    assert frame.drop(columns=label).isna().any(axis=1).sum() > 5  # enough rows have holes
    given = np.array([row["probabilities"] for row in served])
    scored = [[row[f"probabilities_{name}"] for name in names] for row in read]
    np.testing.assert_allclose(scored, given, rtol=1e-5, atol=1e-6)
    chosen = np.array(names)[given.argmax(axis=1)]
    assert [row["classes"] for row in read] == chosen.tolist()
    labels = frame[label].astype(str).to_numpy()
    test = np.arange(len(frame)) % 10 == 9
    assert evaluated["accuracy"] == pytest.approx(np.mean(chosen[test] == labels[test]), abs=1e-6)
    right = given[np.arange(len(frame)), [names.index(one) for one in labels]]
    assert evaluated["average_loss"] == pytest.approx(-np.log(right[test]).mean(), rel=1e-4)


def test_one_answer_for_every_row(tmp_path, capsys):
    frame, label = wine()
    sizes = ["--hidden-units", "8", "--epochs", "4", "--patience", "0", "--missing-category"]
    compare(frame, label, whole_way(tmp_path, frame, label, capsys, *sizes))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The 'convert_dates' keyword")  # vega_datasets uses it
@pytest.mark.parametrize("make", [penguins, cars, election])
def test_real_tables(tmp_path, capsys, make):
    """Run with `uv run --group tables pytest -m slow plugins/canned_tabular/tests/test_whole_way.py`."""
    for package in ("palmerpenguins", "vega_datasets", "statsmodels"):
        pytest.importorskip(package)
    frame, label = make()
    found = whole_way(tmp_path, frame, label, capsys)
    compare(frame, label, found)
    assert found[2]["accuracy"] > frame[label].value_counts(normalize=True).max()
