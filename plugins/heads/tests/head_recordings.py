"""Reads the recorded results of tf.estimator's own heads (see recorded/README.md).

Refuses those of changed recorders.
"""

import functools
import hashlib
import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent
RECORDED = FOLDER / "recorded"
TENSORFLOW = "2.15.1"


class StaleRecordingError(Exception):
    """A recording was made by another version of its recorder, or by another version of TensorFlow."""


def names():
    """The names of all recordings."""
    return sorted(path.stem for path in RECORDED.glob("*.json"))


@functools.cache
def load(name):
    """Returns the cases of a recording, ``{case name: case}``, after checking its header.

    Raises:
        StaleRecordingError: the header does not fit the recorder's text or names another TensorFlow.
    """
    recording = json.loads((RECORDED / f"{name}.json").read_text())
    check_header(recording["header"])
    return recording["cases"]


def check_header(header, folder=FOLDER):
    """Raises StaleRecordingError unless ``header`` fits the recorder's sources as they are now."""
    if header["versions"]["tensorflow"] != TENSORFLOW:
        raise StaleRecordingError(f"recorded with TensorFlow {header['versions']['tensorflow']}, not {TENSORFLOW}")
    for source, recorded in header["sources_sha256"].items():
        if hashlib.sha256((folder / source).read_bytes()).hexdigest() != recorded:
            raise StaleRecordingError(f"{source} has changed since it was recorded; run `python {header['script']}`")


def exported(case):
    """The export outputs of a case. Each ``"=key"`` is replaced by the prediction that it refers to."""
    expected = case["expected"]
    predictions = {
        key: expected["predictions"][0][value[1:]] if isinstance(value, str) else value
        for key, value in expected["spec_predictions"].items()
    }

    def resolved(value):
        if isinstance(value, dict):
            return {key: resolved(item) for key, item in value.items()}
        return predictions[value[1:]] if isinstance(value, str) and value.startswith("=") else value

    return resolved(expected["export_outputs"])
