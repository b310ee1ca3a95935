"""Tests that the current text of each recorder has written its recording, and that a changed recorder is detected."""

import json
import pathlib

import pytest

from tests.parity import data, rerecord

RECORDERS = sorted(path.stem.removeprefix("record_") for path in data.FOLDER.glob("record_*.py"))


def header_of(name):
    return json.loads((data.RECORDED / f"{name}.json").read_text())["header"]


def test_each_recorder_has_its_recording_and_the_other_way_round():
    assert data.names() == RECORDERS


@pytest.mark.parametrize("name", RECORDERS)
def test_recording_fits_its_recorder(name):
    assert header_of(name)["script"] == f"record_{name}.py"
    assert data.load(name)


@pytest.mark.parametrize("name", RECORDERS)
def test_header_names_versions_and_seed(name):
    header = header_of(name)
    assert header["versions"]["tensorflow"] == "2.15.1"
    assert set(header["versions"]) == {"python", "tensorflow", "tensorflow_estimator", "numpy"}
    assert isinstance(header["seed"], int)


def test_changed_recorder_is_refused(tmp_path):
    header = header_of("training")
    for source in header["sources_sha256"]:
        text = (data.FOLDER / source).read_text()
        (tmp_path / source).write_text(text)
    data.check_header(header, tmp_path)
    pathlib.Path(tmp_path / "record_training.py").write_text("changed")
    with pytest.raises(data.StaleRecordingError, match=r"record_training\.py has changed"):
        data.check_header(header, tmp_path)


def test_other_tensorflow_is_refused():
    header = header_of("training")
    header["versions"]["tensorflow"] = "2.16.1"
    with pytest.raises(data.StaleRecordingError, match=r"2\.16\.1"):
        data.check_header(header)


def test_check_of_a_new_recording_sees_each_kind_of_difference():
    committed = {"a": [1, 2.0], "b": {"c": "x"}, "d": None}
    assert list(rerecord.differences(committed, {"a": [1, 2.000001], "b": {"c": "x"}, "d": None})) == []
    assert list(rerecord.differences(committed, {"a": [1, 2.1], "b": {"c": "y"}, "e": None})) == [
        "/a[1]: committed 2.0, made 2.1",
        '/b/c: committed "x", made "y"',
        "/d: only in committed",
        "/e: only in made",
    ]
