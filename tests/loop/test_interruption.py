"""Tests of SIGTERM during training: what is saved, and that no later save or evaluation moves (traps 28 and 38)."""

from __future__ import annotations

import logging
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import estimator_core as ec
from estimator_core._checkpoint.audit import audit
from estimator_core._loop.result_log import WriterLedger
from estimator_core.errors import PreemptedError


class Terminate(ec.Hook):
    def __init__(self, at: int) -> None:
        self.at = at

    def next_step(self, step: int) -> int | None:
        return self.at if step < self.at else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


class WritesAtItsEnd(ec.Hook):
    def end(self, run: Any) -> None:
        run.summaries.scalar("at_end", 1.0, run.step)


def evaluated(estimator: ec.Estimator) -> list[int]:
    return sorted(ec.read_eval_metrics(estimator.eval_dir()))


@pytest.mark.parametrize("began_at", [0, 3])
def test_the_cadence_is_that_of_the_uninterrupted_call(
    make_estimator: Any, train_input: Any, eval_input: Any, steps_saved: Any, began_at: int
) -> None:
    def run(max_steps: int, hooks: Any = ()) -> ec.Estimator:
        estimator = make_estimator(keep_checkpoint_max=None)
        spec = ec.TrainSpec(train_input, max_steps=max_steps, hooks=hooks)
        ec.train_and_evaluate(estimator, spec, ec.EvalSpec(eval_input))
        return estimator

    before = sorted({0, began_at})
    if began_at:
        run(began_at)
    with pytest.raises(PreemptedError, match="saved at step 7") as raised:
        run(30, [Terminate(7)])
    assert raised.value.step == 7
    estimator = run(30)
    cadence = [10, 20, 30] if began_at == 0 else [13, 23, 30]
    assert steps_saved(estimator) == [*before, 7, *cadence]
    assert evaluated(estimator) == [step for step in before if step] + cadence
    # a call that follows a completed one starts a new cadence
    assert steps_saved(run(45)) == [*before, 7, *cadence, 40, 45]


def test_an_interrupted_run_is_in_order(make_estimator: Any, train_input: Any) -> None:
    for step in (7, 12):  # the second call resumes the first one
        estimator = make_estimator(save_summary_steps=3)
        with pytest.raises(PreemptedError):
            estimator.train(train_input, hooks=[Terminate(step), WritesAtItsEnd()], max_steps=20)
        assert [str(found) for found in audit(Path(estimator.model_dir)).findings] == []


def test_who_is_interrupted_hears_it_though_nothing_more_is_recorded(
    make_estimator: Any, train_input: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(ledger: Any, step: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(WriterLedger, "broken_off", full)
    with pytest.raises(PreemptedError, match="saved at step 7"):
        make_estimator().train(train_input, hooks=[Terminate(7)], max_steps=20)


def test_interrupted_and_resumed_gives_the_same_bits(make_estimator: Any, train_input: Any, tmp_path: Any) -> None:
    whole = make_estimator(model_dir=tmp_path / "whole", prefetch=3).train(train_input, max_steps=20)
    with pytest.raises(PreemptedError):
        make_estimator(prefetch=3).train(train_input, hooks=[Terminate(13)], max_steps=20)
    resumed = make_estimator(prefetch=3).train(train_input, max_steps=20)
    assert all((resumed.variables[name] == value).all() for name, value in whole.variables.items())


class TerminateEvaluation(ec.Hook):
    """Sends SIGTERM at the second batch of the evaluation with this number (from 1)."""

    def __init__(self, number: int) -> None:
        self.number, self.begun, self.batches = number, 0, []

    def begin(self, run: Any) -> None:
        self.begun += 1
        self.batches.append(0)

    def next_step(self, step: int) -> int:
        return step + 1

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.batches[-1] = step
        if self.begun == self.number and step == 2:
            os.kill(os.getpid(), signal.SIGTERM)


def points(eval_dir: str) -> list[tuple[int, float]]:
    """Returns the losses that TensorBoard's own reader finds."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return [(event.step, event.value) for event in EventAccumulator(eval_dir).Reload().Scalars("loss")]


class Exported(ec.export.Exporter):
    """An exporter that records the step and whether the export is the final one."""

    name = "noting"

    def __init__(self, log: list[tuple[int, bool]]) -> None:
        self.log = log

    def export(self, estimator: Any, path: str, checkpoint: str, result: Any, final: bool) -> None:
        self.log.append((result["global_step"], final))


@pytest.mark.parametrize(("number", "saved"), [(1, 10), (3, 30)], ids=["under way", "the last one"])
def test_an_evaluation_is_broken_off_and_made_up(
    make_estimator: Any, train_input: Any, eval_input: Any, tmp_path: Any, number: int, saved: int
) -> None:
    def run(at: Any, hooks: Any = ()) -> ec.Estimator:
        estimator = make_estimator(model_dir=tmp_path / at)
        eval_spec = ec.EvalSpec(eval_input, hooks=hooks, exporters=[Exported(exported[at])])
        ec.train_and_evaluate(estimator, ec.TrainSpec(train_input, max_steps=30), eval_spec)
        return estimator

    exported: dict[str, list[tuple[int, bool]]] = {"whole": [], "resumed": []}
    whole = run("whole")
    terminate = TerminateEvaluation(number)
    with pytest.raises(PreemptedError, match=f"saved at step {saved}"):
        run("resumed", [terminate])
    assert [done for done in terminate.batches if done] == [*[3] * (number - 1), 2]
    assert saved not in ec.read_eval_metrics(tmp_path / "resumed" / "eval")
    resumed = run("resumed")
    assert evaluated(resumed) == [10, 20, 30]
    assert points(resumed.eval_dir()) == points(whole.eval_dir())
    assert ec.read_eval_metrics(resumed.eval_dir()) == ec.read_eval_metrics(whole.eval_dir())
    assert exported["resumed"] == exported["whole"] == [(10, False), (20, False), (30, True)]
    assert all((resumed.variables[name] == value).all() for name, value in whole.variables.items())


def test_exports_are_left_out_and_made_up(
    make_estimator: Any, train_input: Any, eval_input: Any, tmp_path: Any
) -> None:
    class TerminateSave(ec.CheckpointListener):
        def before_save(self, run: Any, step: int) -> None:
            if step == 20 and not exported_twice:
                os.kill(os.getpid(), signal.SIGTERM)

    def run() -> ec.Estimator:
        estimator = make_estimator()
        spec = ec.TrainSpec(train_input, max_steps=30, saving_listeners=[TerminateSave()])
        ec.train_and_evaluate(estimator, spec, ec.EvalSpec(eval_input, exporters=[Exported(exported)]))
        return estimator

    exported: list[tuple[int, bool]] = []
    exported_twice: list[bool] = []
    with pytest.raises(PreemptedError, match="saved at step 20"):
        run()
    assert exported == [(10, False)]
    exported_twice.append(True)
    assert [step for step, _ in points(run().eval_dir())] == [10, 20, 30]
    assert exported == [(10, False), (20, False), (30, True)]


def test_when_the_grace_time_is_over_the_log_says_what_is_waited_for(
    make_estimator: Any, train_input: Any, caplog: Any
) -> None:
    class SlowListener(ec.CheckpointListener):
        def before_save(self, run: Any, step: int) -> None:
            if step:
                said.wait(20)

    class Said(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "grace time" in record.getMessage():
                said.set()

    said = threading.Event()
    handler = Said()
    logging.getLogger("estimator_core").addHandler(handler)
    try:
        with pytest.raises(PreemptedError, match="saved at step 7"):
            make_estimator(grace_secs=1.0).train(
                train_input, hooks=[Terminate(7)], max_steps=20, saving_listeners=[SlowListener()]
            )
    finally:
        logging.getLogger("estimator_core").removeHandler(handler)
    (record,) = [record for record in caplog.records if "grace time" in record.getMessage()]
    text = record.getMessage()
    assert "The grace time of 1 s since SIGTERM is over (RunConfig.grace_secs) and the run still waits for " in text
    assert "in before_save" in text
    assert "Thread MainThread" in text
