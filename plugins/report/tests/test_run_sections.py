"""Tests of the sections about a run: record, curves of the training, and kept checkpoints."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboardX import SummaryWriter

from estimator_core.checkpoint import CheckpointItems, CheckpointStore
from estimator_core.cli import main
from estimator_report import ReportSource, build_page
from estimator_report.scalars import read_scalars
from estimator_report.section_suite import unclosed
from estimator_report.sections.goodput import GoodputSection
from estimator_report.sections.kept import KeptSection
from estimator_report.sections.run import RunSection
from estimator_report.sections.training import TrainingSection

HOSTILE = '<script>alert("x")</script>'
RECORD: dict[str, Any] = {
    "arguments": ["estimator", "run", "my program.py", HOSTILE],
    "versions": {"jax": "0.10.0", HOSTILE: "1"},
    "run_config": {"model_dir": HOSTILE, "keep": None},
    "hparams": {"rate": 0.1},
    "plugins": [{"name": "hooks", "distribution": "estimator-hooks", "version": "0.1.0"}],
    "starts": [{"time": "2026-01-01T00:00:00+0000", "step": 0}],
    "ended": {"step": 50, "reason": "reached step 50", "failed": False},
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run.json").write_text(json.dumps(RECORD))
    with SummaryWriter(str(tmp_path)) as writer:
        for step in range(1, 51):
            writer.add_scalar("loss", 1.0 / step, step)
            writer.add_scalar("another", step, step)
    export = tmp_path / "export" / "final" / "1234567890"
    export.mkdir(parents=True)
    (export / "manifest.json").write_text(json.dumps({"global_step": 50}))
    return tmp_path


def source(model_dir: Path) -> ReportSource:
    return ReportSource(model_dir=model_dir, evaluation="", results={})


def test_a_run_that_was_not_evaluated_has_a_page(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(run)]) == 0
    page = (run / "report.html").read_text()
    assert unclosed(page) == []
    assert "<script" not in page
    headings = [part.split("</h2>")[0] for part in page.split("<h2>")[1:]]
    assert headings == ["Run", "Training", "Checkpoints and exports on disk"]
    assert page.index(">loss<") < page.index(">another<")  # the loss comes first
    for part in ("&#x27;my program.py&#x27;", "at step 50: reached step 50", "estimator-hooks", "final/1234567890"):
        assert part in page


def test_where_the_time_went(run: Path) -> None:
    with CheckpointStore(run) as store:
        items = CheckpointItems(
            clock=np.array([50, 0, 0, 0], np.uint32),
            variables={"w": np.zeros(2, np.float32)},
            hooks={
                "estimator_hooks.GoodputHook": {
                    "seconds": {"step": 6.0, "input": 1.5, "hooks": 0.0},
                    "hooks": {"QuickHook": 0.015, "SlowHook": 0.3},
                }
            },
        )
        store.save(50, items)
    body = GoodputSection().body(source(run)) or ""
    assert body.index("<td>step</td><td>6.0</td><td>80.0%</td>") < body.index("<td>input</td>")
    assert "<td>hooks</td>" not in body
    slow, quick = "<td>SlowHook</td><td>0.300</td><td>4.0%</td>", "<td>QuickHook</td><td>0.015</td><td>0.2%</td>"
    assert body.index("Slowest hooks") < body.index(slow) < body.index(quick)
    assert "<td>50</td>" in (KeptSection().body(source(run)) or "")


def test_a_run_that_failed_says_so(run: Path) -> None:
    record = {**RECORD, "ended": {"step": 7, "reason": "NaN", "failed": True}}
    (run / "run.json").write_text(json.dumps(record))
    assert "<td>failed</td><td>at step 7: NaN</td>" in (RunSection().body(source(run)) or "")


def test_a_run_that_has_not_ended_says_so(run: Path) -> None:
    record = {name: value for name, value in RECORD.items() if name != "ended"}
    (run / "run.json").write_text(json.dumps(record))
    assert "<tr><td>ended</td><td>not yet, or its process was killed</td></tr>" in (
        RunSection().body(source(run)) or ""
    )


@pytest.mark.parametrize("text", ["{", "[]", "1"])
def test_a_torn_record_is_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    assert RunSection().body(source(tmp_path)) is None


def test_nothing_to_say(tmp_path: Path) -> None:
    for section in (GoodputSection(), RunSection(), TrainingSection(), KeptSection()):
        assert section.body(source(tmp_path)) is None
    assert build_page("x", source(tmp_path), [RunSection()]).count("<h2>") == 0


def test_scalars_of_a_file_that_breaks_off(run: Path) -> None:
    whole = read_scalars(run)
    assert len(whole["loss"]) == 50
    assert whole["loss"][-1] == (50, pytest.approx(0.02))
    (path,) = run.glob("events.out.tfevents.*")
    path.write_bytes(path.read_bytes()[:-10])
    assert len(read_scalars(run)["another"]) == 49
    with path.open("ab") as file:
        file.write(struct.pack("<Q", 1 << 40) + b"0000")
    assert len(read_scalars(run)["loss"]) == 50


def test_a_long_curve_is_thinned_and_keeps_its_end(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path)) as writer:
        for step in range(3000):
            writer.add_scalar("loss", step, step)
    body = TrainingSection().body(source(tmp_path)) or ""
    assert body.split('points="')[1].split('"')[0].count(",") <= 502
    assert ">2999<" in body
