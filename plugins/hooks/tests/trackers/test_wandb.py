"""Tests of WandbTracker with the real library, offline."""

from pathlib import Path

import numpy as np
import pytest

import estimator_hooks as eh
from estimator_core.testing import drive
from plugins.hooks.tests.trackers.test_tracker_hook import KEPT, fake_run, leave_record

wandb = pytest.importorskip("wandb", reason="Weights & Biases is not installed: estimator-hooks[wandb]")
pytestmark = [
    pytest.mark.libraries,
    pytest.mark.filterwarnings("ignore"),
]


def test_offline_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WANDB_SILENT", "true")
    tracker = eh.WandbTracker("digits", mode="offline")
    leave_record(tmp_path)
    run = fake_run(tmp_path, params={"rate": 0.1})
    seen: list[dict[str, float]] = []
    hook = eh.TrackerHook(tracker, 2)
    original = tracker.finish

    def finish(ending: str) -> None:
        seen.append({**tracker._run.summary, "rate": tracker._run.config["params/rate"]})
        original(ending)  # type: ignore[arg-type]

    monkeypatch.setattr(tracker, "finish", finish)
    drive([hook], steps=7, run=run, outputs={"loss": lambda step: np.float32(step)})
    assert (seen[0]["train/loss"], seen[0]["rate"]) == (6.0, 0.1)
    assert seen[0]["train/global_step"] == 6
    assert list((tmp_path / "wandb").glob("offline-run-*/*.wandb"))
    for name, text in KEPT.items():
        (file,) = (tmp_path / "wandb").glob(f"offline-run-*/files/{name}")
        assert file.read_text() == text
