"""Reads the recorded results of TensorFlow's canned estimators, and refuses recordings of changed recorders."""

import functools
import hashlib
import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent
TENSORFLOW = "2.15.1"


class StaleRecordingError(Exception):
    """A recording was made by another version of its recorder, or by another TensorFlow."""


@functools.cache
def load(name):
    """Returns the cases of ``recorded/<name>.json`` by name.

    Raises:
        StaleRecordingError: the header does not fit the recorder's sources.
    """
    recording = json.loads((FOLDER / "recorded" / f"{name}.json").read_text())
    header = recording["header"]
    if header["versions"]["tensorflow"] != TENSORFLOW:
        raise StaleRecordingError(f"recorded with TensorFlow {header['versions']['tensorflow']}, not {TENSORFLOW}")
    for source, recorded in header["sources_sha256"].items():
        if hashlib.sha256((FOLDER / source).read_bytes()).hexdigest() != recorded:
            raise StaleRecordingError(f"{source} has changed since it was recorded; run `python {header['script']}`")
    return recording["cases"]
