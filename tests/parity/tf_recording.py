"""What every recorder shares: turning results into JSON, capturing errors, writing a recording with its header.

Runs in an environment that has ``tensorflow-cpu==2.15.1`` and nothing of this project.
"""

import hashlib
import json
import logging
import os
import pathlib
import platform
import re
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np
import tensorflow as tf

SEED = 20150415
FOLDER = pathlib.Path(__file__).resolve().parent

_REPLACEMENTS = (
    (re.compile(r"0x[0-9a-f]{6,}"), "0x0"),
    (re.compile(re.escape(tempfile.gettempdir()) + r"/[\w./-]+?(?=[\s'\",:;)\]]|\.$|\. |$)"), "<dir>"),
    (re.compile(r"/[\w./-]*site-packages/"), "<site-packages>/"),
    (re.compile(r"\d+\.\d+ sec\b"), "<seconds> sec"),
    (re.compile(r"(global_step/sec|examples/sec): [\d.e+-]+"), r"\1: <rate>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"), "<time>"),
    (re.compile(r"Inference Time : [\d.]+s"), "Inference Time : <seconds>s"),
)


def normalised(text):
    """Takes out of a message what changes from run to run: addresses, temporary paths, seconds."""
    for pattern, replacement in _REPLACEMENTS:
        text = pattern.sub(replacement, text)
    return text


def plain(value):
    """A JSON form of any result; floats keep the shortest digits that name their float32 value."""
    if isinstance(value, dict):
        return {"/".join(key) if isinstance(key, tuple) else str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist()) if value.dtype != np.float32 else _float32(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, pathlib.Path):
        return normalised(str(value))
    return value


def _float32(value):
    if value.ndim:
        return [_float32(item) for item in value]
    return _float(float(str(np.float32(value))))


def _float(value):
    return value if np.isfinite(value) else repr(value)


def error_of(function, *args, **kwargs):
    """Calls ``function`` and returns ``{"type", "message"}`` of what it raises, or None."""
    try:
        function(*args, **kwargs)
    except Exception as error:
        return described(error)
    return None


def described(error):
    message = str(error).split("\n\nGraph execution error")[0]  # what follows is a traceback
    return {"type": type(error).__name__, "message": normalised(message)[:600]}


class LogLines(logging.Handler):
    """Collects the lines that tf.estimator logs, without times and paths."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(f"{record.levelname} {normalised(record.getMessage())}")


def listen_to_log():
    logger = tf.get_logger()
    logger.setLevel(logging.INFO)
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
    lines = LogLines()
    logger.addHandler(lines)
    logger.propagate = False
    return lines


def write(script, cases, folder=None, helpers=()):
    """Writes ``recorded/<name>.json`` for ``record_<name>.py``; ``rerecord.py`` redirects it by RECORDED_FOLDER."""
    script = pathlib.Path(script).resolve()
    sources = [script, pathlib.Path(__file__).resolve(), *(FOLDER / helper for helper in helpers)]
    header = {
        "script": script.name,
        "sources_sha256": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sources},
        "seed": SEED,
        "versions": {
            "python": platform.python_version(),
            "tensorflow": tf.__version__,
            "tensorflow_estimator": _version_of("tensorflow-estimator"),
            "numpy": np.__version__,
        },
    }
    target = pathlib.Path(os.environ.get("RECORDED_FOLDER") or folder or FOLDER / "recorded")
    target.mkdir(parents=True, exist_ok=True)
    path = target / (script.stem.removeprefix("record_") + ".json")
    lines = [f"{json.dumps(name)}: {json.dumps(plain(case), separators=(',', ':'))}" for name, case in cases.items()]
    body = ",\n".join(lines)
    path.write_text(f'{{"header": {json.dumps(header)},\n"cases": {{\n{body}\n}}}}\n')
    print(f"{path}: {len(cases)} cases, {path.stat().st_size / 1024:.0f} KiB", file=sys.stderr)


def _version_of(distribution):
    from importlib import metadata

    return metadata.version(distribution)
