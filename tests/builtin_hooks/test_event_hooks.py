"""Tests of StepCounterHook and SummarySaverHook: what TensorBoard's reader finds after one run and after a resumed
one.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from estimator_core import Processes
from estimator_core._builtin_hooks.step_counter import StepCounterHook
from estimator_core._builtin_hooks.summary_saver import SummarySaverHook
from estimator_core._summaries import open_summary_writer
from estimator_core.config import RunConfig
from tests.builtin_hooks.driver import drive

KINDS = {"kernel": "histogram", "sample": "image", "hidden": "tensor", "accuracy": "metric"}
OUTPUTS: dict[str, Callable[[int], Any]] = {
    "kernel": lambda step: np.arange(4.0),
    "sample": lambda step: np.zeros((2, 3, 3, 1), np.uint8),
    "hidden": lambda step: np.zeros(3),
    "accuracy": lambda step: 0.25 * step,
}


def read(directory: Path) -> EventAccumulator:
    return EventAccumulator(
        str(directory), size_guidance={"scalars": 0, "images": 0, "histograms": 0, "tensors": 0}
    ).Reload()


def steps(directory: Path, tag: str) -> list[int]:
    return [event.step for event in read(directory).Scalars(tag)]


@pytest.mark.parametrize("k", [1, 4])
def test_summaries(tmp_path: Path, k: int):
    writer = open_summary_writer(tmp_path)
    hook = SummarySaverHook(save_steps=5)
    drive([hook], steps=12, k=k, outputs=OUTPUTS, kinds=KINDS, texts={"note": "hello"}, summaries=writer)
    writer.close()
    events = read(tmp_path)
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [
        (1, 0.5),
        (6, pytest.approx(1 / 7)),
        (11, pytest.approx(1 / 12)),
    ]
    assert [event.value for event in events.Scalars("accuracy")] == [0.25, 1.5, 2.75]
    assert [event.step for event in events.Histograms("kernel")] == [1, 6, 11]
    assert [event.step for event in events.Images("sample/image/1")] == [1, 6, 11]
    assert [event.step for event in events.Tensors("note/text_summary")] == [1]
    assert "hidden" not in str(events.Tags())


def test_own_directory(tmp_path: Path):
    hooks = [
        SummarySaverHook(save_steps=2, output_dir=tmp_path / "a"),
        StepCounterHook(every_n_steps=2, output_dir=tmp_path / "b"),
    ]
    drive(hooks, steps=6)  # states() at the end has flushed
    assert steps(tmp_path / "a", "loss") == [1, 3, 5]
    assert steps(tmp_path / "b", "global_step/sec") == [3, 5]


@pytest.mark.parametrize("index", [0, 1])
def test_of_two_processes_only_the_first_writes_to_the_directory_of_a_hook(tmp_path: Path, index: int):
    config = RunConfig(model_dir=str(tmp_path), processes=Processes("127.0.0.1:7070", count=2, index=index))
    hooks = [
        SummarySaverHook(save_steps=2, output_dir=tmp_path / "a"),
        StepCounterHook(every_n_steps=2, output_dir=tmp_path / "b"),
    ]
    drive(hooks, steps=6, config=config)
    assert sorted(path.name for path in tmp_path.iterdir()) == ([] if index else ["a", "b"])


def test_own_writer(tmp_path: Path):
    writer = open_summary_writer(tmp_path / "c")
    drive([SummarySaverHook(save_steps=2, summary_writer=writer), StepCounterHook(2, summary_writer=writer)], steps=6)
    writer.close()
    assert steps(tmp_path / "c", "loss") == [1, 3, 5]
    assert steps(tmp_path / "c", "global_step/sec") == [3, 5]


@pytest.mark.parametrize("checkpoint", [1, 3, 4, 6, 9])
@pytest.mark.parametrize("killed_after", [0, 5])
def test_kill_and_resume_leave_the_points_of_an_uninterrupted_run(tmp_path: Path, checkpoint: int, killed_after: int):
    def hooks() -> list[Any]:
        return [SummarySaverHook(save_steps=3), StepCounterHook(every_n_steps=3)]

    def run(directory: Path, count: int, start: int = 0, resume: Any = None) -> Any:
        writer = open_summary_writer(directory, resume_step=start)
        try:
            return drive(hooks(), steps=count, start=start, resume=resume, summaries=writer, texts={"note": "x"}).states
        finally:
            writer.close()

    run(tmp_path / "straight", 14)
    states = run(tmp_path / "killed", checkpoint)
    run(
        tmp_path / "killed", killed_after, checkpoint, resume=states
    )  # steps after the checkpoint, lost with the process
    run(tmp_path / "killed", 14 - checkpoint, checkpoint, resume=states)
    for tag in ("loss", "global_step/sec"):
        assert steps(tmp_path / "killed", tag) == steps(tmp_path / "straight", tag)
    assert [event.value for event in read(tmp_path / "killed").Scalars("loss")] == [
        event.value for event in read(tmp_path / "straight").Scalars("loss")
    ]
    assert [event.step for event in read(tmp_path / "killed").Tensors("note/text_summary")] == [1]


def test_rate_counts_completed_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from estimator_core._builtin_hooks import step_counter

    now = [100.0]
    monkeypatch.setattr(step_counter.time, "monotonic", lambda: now[0])

    def loss(step: int) -> float:
        now[0] += 0.5
        return 1.0

    writer = open_summary_writer(tmp_path)
    drive([StepCounterHook(every_n_steps=4)], steps=9, outputs={"loss": loss}, summaries=writer)
    writer.close()
    assert [(event.step, event.value) for event in read(tmp_path).Scalars("global_step/sec")] == [(5, 2.0), (9, 2.0)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SummarySaverHook(), "^SummarySaverHook: exactly one of save_secs and save_steps"),
        (lambda: SummarySaverHook(save_steps=1, save_secs=1.0), "^SummarySaverHook: exactly one of save_secs and"),
        (lambda: StepCounterHook(every_n_steps=1, every_n_secs=1.0), "exactly one of every_n_secs and every_n_steps"),
        (
            lambda: StepCounterHook(every_n_steps=None),
            "^StepCounterHook: exactly one of every_n_secs and every_n_steps",
        ),
    ],
)
def test_refused(make: Callable[[], Any], message: str):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_new_call_writes_its_first_step(tmp_path: Path):
    writer = open_summary_writer(tmp_path)
    hook = SummarySaverHook(save_steps=5)
    drive([hook], steps=3, summaries=writer)
    drive([hook], steps=3, start=3, summaries=writer)
    writer.close()
    assert steps(tmp_path, "loss") == [1, 4]
