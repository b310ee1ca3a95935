"""The recordings of tf.estimator's heads are as their recorders wrote them, and there are enough of them."""

import collections
import json

import pytest

from plugins.heads.tests import head_recordings

RECORDERS = sorted(path.stem.removeprefix("record_") for path in head_recordings.FOLDER.glob("record_*.py"))


def header_of(name):
    return json.loads((head_recordings.RECORDED / f"{name}.json").read_text())["header"]


def test_each_recorder_has_its_recording_and_the_other_way_round():
    assert head_recordings.names() == RECORDERS


@pytest.mark.parametrize("name", RECORDERS)
def test_recording_fits_its_recorder(name):
    assert header_of(name)["script"] == f"record_{name}.py"
    assert head_recordings.load(name)


def test_changed_recorder_is_refused(tmp_path):
    header = header_of("head_cases")
    for source in header["sources_sha256"]:
        (tmp_path / source).write_text("changed")
    with pytest.raises(head_recordings.StaleRecordingError, match="has changed"):
        head_recordings.check_header(header, tmp_path)


def test_other_tensorflow_is_refused():
    header = header_of("head_cases")
    header["versions"]["tensorflow"] = "2.16.1"
    with pytest.raises(head_recordings.StaleRecordingError, match=r"2\.16\.1"):
        head_recordings.check_header(header)


def test_each_head_and_option_was_drawn_at_least_twenty_times():
    met = collections.Counter()
    cases = head_recordings.load("random_heads")
    for case in cases.values():
        met[case["head"]["class"]] += 1
        met.update((case["head"]["class"], option) for option in case["options"])
    assert len(cases) >= 500
    assert min(met.values()) >= 20
