"""Tests that a plugin for contract 1.0 keeps working with every core of major version 1.

One member of its hook was rewritten once, before the first release: `values()` became `run.follow` in `begin`, as
`estimator plugins doctor --fix` does it. The rest is unchanged.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from estimator_core.plugins import Plugins
from estimator_core.testing import FakeRun, drive

FOLDER = Path(__file__).parent / "frozen_1_0"
FINGERPRINT = "6b4ea4902f1cc36c37f8b6ce22d08d3a3590d410f17ac7a8994c111a5c23b05b"


@pytest.fixture
def frozen(tmp_path, monkeypatch):
    shutil.copytree(FOLDER, tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield tmp_path / "site"
    for name in [name for name in sys.modules if name.startswith("frozen_1_0")]:
        del sys.modules[name]


def plugins(**arguments):
    return Plugins(**{"only": ["frozen-1-0"], "environ": {}, "strict": True, **arguments})


def test_the_files_are_as_they_were_shipped():
    digest = hashlib.sha256()
    for path in sorted(path for path in FOLDER.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        digest.update(path.relative_to(FOLDER).as_posix().encode() + path.read_bytes())
    assert digest.hexdigest() == FINGERPRINT


def test_every_kind_is_looked_up(frozen):
    found = plugins()
    (kinds,) = ({one.kind for one in record.components} for record in found.records() if record.name == "frozen")
    assert len(kinds) == 9  # those of contract 1.0
    assert {kind: found.get(kind, "frozen").__name__ for kind in kinds} == {kind: kind.title() for kind in kinds}


def test_its_hook_goes_through_a_run(frozen):
    (hook,) = plugins(options={"frozen-1-0": {"text": "given"}}).run_hooks(FakeRun())
    assert hook.text == "given"
    drive([hook], steps=4, outputs={"loss": lambda step: np.float32(step)}, resume=[{"calls": 9}])
    values = [call for call in hook.calls if call[0] == "values"]
    assert sum(count for _, count, _ in values) == 4
    assert [call for call in hook.calls if call not in values] == [
        *("begin", ("restored", 9), "after_create"),
        *(("before", 1), ("after", 2, 2.0, 1, [2]), ("before", 3), ("after", 4, 4.0, 1, [4])),
        "end",
    ]


def test_its_observers_are_called_with_its_options(frozen):
    found, run = plugins(environ={"ESTIMATOR_OPTION_FROZEN_1_0_SHARE": "0.25"}), FakeRun(name="test")
    found.run_start(run)
    found.checkpoint_saved(run, 3, "path")
    found.evaluation_finished(run, {"loss": 1.0})
    found.export_written(run.estimator, "path", "stablehlo")
    found.run_end(run, None)
    events = sys.modules["frozen_1_0.plugin"].EVENTS
    options = {"text": "default", "number": 1, "share": 0.25, "flag": False}
    assert events == [
        ("run_start", "train", options),
        ("checkpoint_saved", 3, "path", options),
        ("evaluation_finished", "test", 1.0, options),
        ("export_written", "path", "stablehlo", options),
        ("run_end", 0, None, options),
    ]


def test_its_command_runs(frozen):
    path = os.pathsep.join([str(frozen), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "estimator_core._cli.main", "frozen", "hello"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "frozen says hello\n"), done.stderr
