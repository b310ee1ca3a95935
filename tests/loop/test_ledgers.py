"""Tests of when the result of an evaluation becomes the result of a checkpoint."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import estimator_core as ec
from estimator_core._checkpoint.audit import audit
from estimator_core._checkpoint.store import CheckpointStore
from estimator_core._journal.entries import Entry, Evaluated
from estimator_core._journal.reading import lineage_of
from estimator_core._loop.result_log import WriterLedger
from estimator_core.summaries import read_eval_metrics


class Published:
    """A journal that keeps the published records in memory."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def check(self) -> None:
        """This run is the writer."""

    def publish(self, *entries: Entry) -> None:
        self.entries += entries


def between(step: int, loss: float) -> Evaluated:
    """Returns a result of the variables in memory."""
    return Evaluated(name="", step=step, metrics={"loss": loss}, between=True)


def ledger_of(model_dir: Path) -> WriterLedger:
    journal: Any = Published()
    live: Any = SimpleNamespace(version=1)
    return WriterLedger(journal, model_dir, 0, live)


def test_a_result_is_written_as_that_of_a_checkpoint_once_this_is_there(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path)
    ledger.record(between(5, 0.5))
    ledger.record(between(10, 0.25))
    assert [one.checkpoint for one in ledger.for_save(10) if isinstance(one, Evaluated)] == ["", "checkpoints/10"]
    assert read_eval_metrics(tmp_path / "eval") == {}  # no line for a checkpoint that a kill would prevent
    ledger.committed(5)
    assert read_eval_metrics(tmp_path / "eval") == {}
    for _ in range(2):
        ledger.committed(10)
    assert read_eval_metrics(tmp_path / "eval", with_checkpoint=True) == {10: {"loss": 0.25}}
    assert len((tmp_path / "eval" / "metrics.jsonl").read_text().splitlines()) == 1


def test_a_later_result_of_the_step_is_not_replaced_by_the_earlier_one(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path)
    ledger.record(between(10, 0.25))
    ledger.for_save(10)
    ledger.record(Evaluated(name="", step=10, metrics={"loss": 0.5}, checkpoint="checkpoints/10"))
    ledger.committed(10)
    assert not (tmp_path / "eval" / "metrics.jsonl").exists()  # the evaluator writes its line


class Replaces(ec.Hook):
    """Writes other weights into the last checkpoint."""

    def before_last_save(self, run: Any) -> None:
        run.assign({"b": np.float32(42)})


class Evaluates(ec.Hook):
    """Evaluates at step 9 and, as some hooks do, once more after the last save."""

    def __init__(self, evaluate: Callable[[], object]) -> None:
        self.evaluate = evaluate

    def next_step(self, step: int) -> int | None:
        return 9 if step < 9 else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.evaluate()

    def end(self, run: Any) -> None:
        self.evaluate()


def test_what_is_evaluated_after_the_last_save_is_recorded_after_it(
    make_estimator: Callable[..., ec.Estimator], train_input: Any, eval_input: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds for a slow commit too: here, it ends after the last evaluation."""
    go_on, record, commit = threading.Event(), WriterLedger.record, CheckpointStore._commit

    def recorded(ledger: WriterLedger, result: Evaluated) -> None:
        saved = bool(result.checkpoint)
        record(ledger, result)
        if saved and result.name == "other":
            go_on.set()

    def committed(store: CheckpointStore, draft: Any, *more: Any) -> str:
        assert draft.manifest.step < 10 or go_on.wait(60)
        return commit(store, draft, *more)

    monkeypatch.setattr(WriterLedger, "record", recorded)
    monkeypatch.setattr(CheckpointStore, "_commit", committed)
    estimator = make_estimator()
    hooks = [Replaces(), Evaluates(lambda: estimator.evaluate(eval_input, name="other"))]
    metrics, _ = ec.train_and_evaluate(
        estimator, ec.TrainSpec(train_input, max_steps=10, hooks=hooks), ec.EvalSpec(eval_input)
    )
    model_dir = Path(estimator.model_dir)
    assert audit(model_dir).findings == ()
    lineage = lineage_of(model_dir)
    assert lineage is not None
    assert metrics["loss"] > 1000
    losses = {name: lineage.evaluations[name, 10].metrics["loss"] for name in ("", "other")}
    assert losses == {"": metrics["loss"], "other": metrics["loss"]}


class EvaluatesWhileSaving(ec.CheckpointListener):
    """Evaluates as soon as the save of a checkpoint has begun."""

    def __init__(self, evaluate: Callable[[], object]) -> None:
        self.evaluate = evaluate

    def after_save(self, run: Any, step: int, checkpoint: Any) -> None:
        self.evaluate()


def test_what_a_listener_evaluates_belongs_to_the_checkpoint_however_long_its_commit_takes(
    make_estimator: Callable[..., ec.Estimator], train_input: Any, eval_input: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The speed of the disk decided which results counted for `KeepBest`, `BestExporter` and `restore_best`."""
    evaluated, commit = threading.Event(), CheckpointStore._commit

    def committed(store: CheckpointStore, draft: Any, *more: Any) -> str:
        assert draft.manifest.step == 0 or evaluated.wait(60)
        evaluated.clear()
        return commit(store, draft, *more)

    def evaluate() -> None:
        estimator.evaluate(eval_input, name="saved")
        evaluated.set()

    monkeypatch.setattr(CheckpointStore, "_commit", committed)
    estimator = make_estimator()
    estimator.train(train_input, max_steps=20, saving_listeners=[EvaluatesWhileSaving(evaluate)])
    directory = Path(estimator.eval_dir("saved"))
    assert sorted(read_eval_metrics(directory, with_checkpoint=True)) == [0, 10, 20]
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    assert [Path(line["checkpoint_path"]).name for line in lines] == ["0", "10", "20"]
    assert audit(Path(estimator.model_dir)).findings == ()


class EvaluatesOthers(ec.Hook):
    """Evaluates other weights than those of the checkpoint from which the call starts."""

    def __init__(self, evaluate: Callable[[], object]) -> None:
        self.evaluate = evaluate

    def after_create(self, run: Any) -> None:
        with run.swapped({"b": np.float32(42)}):
            self.evaluate()


@pytest.mark.parametrize("another_process", [False, True])
def test_other_weights_at_the_step_of_a_checkpoint_are_not_those_of_the_checkpoint(
    make_estimator: Callable[..., ec.Estimator], train_input: Any, eval_input: Any, another_process: bool
) -> None:
    estimator = make_estimator().train(train_input, max_steps=10)
    estimator = make_estimator() if another_process else estimator
    hook = EvaluatesOthers(lambda: estimator.evaluate(eval_input, name="other"))
    estimator.train(train_input, max_steps=12, hooks=[hook])
    assert list(read_eval_metrics(estimator.eval_dir("other"))) == [10]
    assert read_eval_metrics(estimator.eval_dir("other"), with_checkpoint=True) == {}
