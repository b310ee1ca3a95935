"""When the result of an evaluation becomes that of a checkpoint."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from estimator_core._journal import Entry, Evaluated
from estimator_core._loop.ledgers import WriterLedger
from estimator_core.summaries import read_eval_metrics


class Published:
    """A journal that keeps what it is told."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def check(self) -> None:
        """This run is the writer."""

    def publish(self, *entries: Entry) -> None:
        self.entries += entries


def between(step: int, loss: float) -> Evaluated:
    """A result of the variables in memory."""
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
    assert read_eval_metrics(tmp_path / "eval") == {}  # a kill now leaves no line for a checkpoint that never came
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
    assert not (tmp_path / "eval" / "metrics.jsonl").exists()  # its line is written by who has evaluated
