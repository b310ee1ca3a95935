"""Reads the recordings of the real tf.estimator, and refuses one that the current text of its recorder did not make."""

import hashlib
import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent
RECORDED = FOLDER / "recorded"
TENSORFLOW = "2.15.1"


class StaleRecordingError(Exception):
    """A recording was made by another version of its recorder or of TensorFlow than the current one."""


def names(folder=RECORDED):
    """Returns the names of all recordings in ``folder``."""
    return sorted(path.stem for path in folder.glob("*.json"))


def load(name, folder=RECORDED, sources=FOLDER):
    """Returns the cases of a recording, ``{case name: case}``, after checking its header.

    Raises:
        StaleRecordingError: the header does not match the text of the recorder, or names another TensorFlow.
    """
    recording = json.loads((folder / f"{name}.json").read_text())
    check_header(recording["header"], sources)
    return recording["cases"]


def check_header(header, sources=FOLDER):
    """Raises StaleRecordingError unless ``header`` matches the current sources of the recorder."""
    if header["versions"]["tensorflow"] != TENSORFLOW:
        raise StaleRecordingError(f"recorded with TensorFlow {header['versions']['tensorflow']}, not {TENSORFLOW}")
    if header["script"] not in header["sources_sha256"]:
        raise StaleRecordingError(f"no hash of {header['script']} in the header")
    for source, recorded in header["sources_sha256"].items():
        present = hashlib.sha256((sources / source).read_bytes()).hexdigest()
        if present != recorded:
            raise StaleRecordingError(
                f"{source} has changed since it was recorded; run `python {header['script']}` again (see README.md)"
            )
