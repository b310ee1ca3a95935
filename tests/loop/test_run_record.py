"""Tests of `run.json`: every start writes it, it holds no secret, and a broken one stops no run."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core._journal.entries import Ended
from estimator_core._journal.writer import take_over
from estimator_core._loop.batches import Feed
from estimator_core._loop.result_log import ResultLog
from estimator_core._loop.run_record import (
    changed_hparams,
    ended_step,
    note_end,
    plain,
    without_secrets,
    write_run_record,
)
from estimator_core._storage.local import LocalStorage
from estimator_core.config import RunConfig
from estimator_core.errors import NanLossDuringTrainingError
from estimator_core.plugins import Plugins
from tests.loop.conftest import linear_model_fn


def write(model_dir: Path, params: Any = None) -> dict[str, Any]:
    take_over(LocalStorage(model_dir), "this test", lambda lineage: 0)
    config = RunConfig(model_dir=str(model_dir))
    write_run_record(model_dir, config=config, params=params, call={"first_step": 0}, plugins=[])
    return json.loads((model_dir / "run.json").read_text())


BROKEN = {
    "list": "[]",
    "null": "null",
    "text": '"text"',
    "torn": "{",
    "starts": '{"starts": 3}',
    "ended": '{"ended": []}',
    "deep": "[" * 100_000,
    "infinite": '{"ended": {"step": 1e400}}',
    "not UTF-8": "\udcff",
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_broken_record_is_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    assert ended_step(tmp_path) is None
    note_end(tmp_path, 3, "done", owed=True)
    assert ended_step(tmp_path) is None
    note_end(tmp_path, 3, "done")
    record = write(tmp_path)
    assert [start["step"] for start in record["starts"]] == [0]
    note_end(tmp_path, 5, "done")
    assert ended_step(tmp_path) is None  # the journal says when a run has ended
    take_over(LocalStorage(tmp_path), "another", lambda lineage: 0).publish(Ended(step=5, reason="done", failed=False))
    assert ended_step(tmp_path) == 5


def test_earlier_starts_stay_listed(tmp_path: Path) -> None:
    write(tmp_path)
    assert len(write(tmp_path)["starts"]) == 2


def test_the_directory_of_the_process_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, run = tmp_path / "place", tmp_path / "run"
    place.mkdir()
    run.mkdir()
    monkeypatch.chdir(place)
    assert write(run)["directory"] == str(place)
    place.rmdir()
    assert write(run)["directory"] is None


def test_secrets_are_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["train.py", "--api-key=abc123", "--password", "abc123", "--data", "https://me:abc123@host/x"]
    monkeypatch.setattr(sys, "argv", arguments)
    params = {"tracker": {"token": "abc123", "project": "p"}, "rate": 0.1, "max_token": 7}
    text = json.dumps(write(tmp_path, params))
    assert "abc123" not in text
    record = json.loads(text)
    assert record["hparams"] == {"tracker": {"token": "***", "project": "p"}, "rate": 0.1, "max_token": 7}
    assert record["arguments"][1:4] == ["--api-key=***", "--password", "***"]


@pytest.mark.parametrize(
    ("word", "masked"),
    [
        ("wandb(api_key=abc123)", "wandb(api_key=***"),
        ("wandb(name=run, api_key='abc123')", "wandb(name=run, api_key=***"),
        ("rate=0.1,api_key=abc123,steps=5", "rate=0.1,api_key=***"),
        ("--hparams=rate=0.1,api_key=abc123", "--hparams=rate=0.1,api_key=***"),
        ("--password=abc,b=abc123", "--password=***"),
        ('tracker={"api_key": "abc123"}', 'tracker={"api_key": ***'),
        ("https://host/?token=abc123", "https://host/?token=***"),
        ("rate=0.1,steps=5", "rate=0.1,steps=5"),
        ("passwords.py:make", "passwords.py:make"),
    ],
)
def test_secrets_inside_of_a_word_are_masked(word: str, masked: str) -> None:
    assert without_secrets(["--hook", word]) == ["--hook", masked]


def test_a_run_that_is_not_finite_ended_there(make_estimator: Any, tmp_path: Path) -> None:
    def model_fn(features: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        loss = (features["x"] * ec.get_variable("w", (), jax.nn.initializers.ones)).mean()
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(1.0))

    x = np.ones((20, 1), np.float32)
    x[6] = np.nan
    estimator = make_estimator(model_fn, steps_per_dispatch=10)
    with pytest.raises(NanLossDuringTrainingError):
        estimator.train(ec.inputs.numpy_input_fn({"x": x}, batch_size=2, shuffle=False))
    ended = json.loads((Path(estimator.model_dir) / "run.json").read_text())["ended"]
    assert (ended["step"], ended["failed"]) == (4, True)


def test_an_error_of_others_with_a_step_is_raised_as_it_is(make_estimator: Any, train_input: Any) -> None:
    class OwnError(Exception):
        step = np.int64(3)

    class Raises(ec.Hook):
        def after_step(self, run: Any, step: int, out: Any) -> None:
            if step == 5:
                raise OwnError("of the user")

    estimator = make_estimator()
    with pytest.raises(OwnError):
        estimator.train(train_input, hooks=[Raises()], max_steps=20)
    assert json.loads((Path(estimator.model_dir) / "run.json").read_text())["ended"]["step"] >= 5


class FailsAtTheEnd(ec.Hook):
    def end(self, run: Any) -> None:
        raise RuntimeError("end of the hook")


class FailsAtTheLastSave(ec.CheckpointListener):
    def before_save(self, run: Any, step: int) -> None:
        if step:
            raise RuntimeError("save of the listener")


def watched(model_dir: Path) -> tuple[ec.Estimator, list[Any]]:
    """Returns an estimator, and the list that receives the ends of its calls as plugins see them."""
    ends: list[Any] = []
    watching = ModuleType("watching")
    watching.ESTIMATOR_PLUGIN_API = (1, 0)  # type: ignore[attr-defined]
    watching.estimator_run_end = lambda run, error: ends.append((run.failed, error))  # type: ignore[attr-defined]
    config = ec.RunConfig(model_dir=str(model_dir), save_checkpoints_steps=10)
    return ec.Estimator(linear_model_fn, config=config, params={}, plugins=Plugins(extra=[watching])), ends


@pytest.mark.parametrize("last_save", [False, True])
def test_a_failure_after_the_last_step_is_recorded(train_input: Any, tmp_path: Path, *, last_save: bool) -> None:
    estimator, ends = watched(tmp_path / "m")
    failing: Any = {"saving_listeners": [FailsAtTheLastSave()]} if last_save else {"hooks": [FailsAtTheEnd()]}
    with pytest.raises(RuntimeError) as raised:
        estimator.train(train_input, max_steps=3, **failing)
    assert ends == [(True, raised.value)]
    ended = json.loads((tmp_path / "m" / "run.json").read_text())["ended"]
    assert ended == {"step": 3, "reason": f"RuntimeError: {raised.value}", "failed": True}
    estimator.train(train_input, max_steps=3)  # what was not saved is trained again
    assert Path(estimator.latest_checkpoint() or "").name == "3"
    assert ends[1:] == [(False, None)]


@pytest.mark.parametrize("call", ["evaluate", "predict"])
def test_plugins_see_a_failure_at_the_end_of_other_calls(
    train_input: Any, eval_input: Any, tmp_path: Path, call: str
) -> None:
    estimator, ends = watched(tmp_path / "m")
    estimator.train(train_input, max_steps=3)
    with pytest.raises(RuntimeError) as raised:
        list(getattr(estimator, call)(eval_input, hooks=[FailsAtTheEnd()]))
    assert ends[1:] == [(True, raised.value)]


@pytest.mark.parametrize("call", ["train", "evaluate"])
def test_plugins_see_that_an_event_file_cannot_be_closed(
    train_input: Any, eval_input: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    close = ResultLog.close

    def full(log: ResultLog) -> None:
        close(log)
        raise OSError("the disk is full")

    estimator, ends = watched(tmp_path / "m")
    estimator.train(train_input, max_steps=3)
    monkeypatch.setattr(ResultLog, "close", full)
    with pytest.raises(OSError, match="the disk is full") as raised:
        estimator.train(train_input, max_steps=6) if call == "train" else estimator.evaluate(eval_input, steps=2)
    assert ends[1:] == [(True, raised.value)]


@pytest.mark.parametrize("call", ["train", "evaluate", "predict"])
def test_plugins_see_the_first_error_of_a_call_whose_input_cannot_be_closed_either(
    train_input: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fails(feed: Feed) -> None:
        raise OSError("the input is lost")

    estimator, ends = watched(tmp_path / "m")
    estimator.train(train_input, max_steps=3)
    monkeypatch.setattr(Feed, "close", fails)
    first = ec.errors.InputError("row 7 is damaged")

    def damaged() -> Any:
        yield from itertools.islice(train_input(), 1)
        raise first

    with pytest.raises(OSError, match="the input is lost"):
        list(getattr(estimator, call)(damaged))
    assert ends[1:] == [(True, first)]


@pytest.mark.parametrize("call", ["train", "evaluate", "predict", "predict and close"])
def test_plugins_see_the_end_of_a_call_whose_input_cannot_be_closed(
    train_input: Any, eval_input: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def interrupted(feed: Feed) -> None:  # it waits for a draw in progress
        raise KeyboardInterrupt

    estimator, ends = watched(tmp_path / "m")
    estimator.train(train_input, max_steps=3)
    predictions: Any = estimator.predict(eval_input)
    calls: dict[str, Callable[[], Any]] = {
        "train": lambda: estimator.train(train_input, max_steps=6),
        "evaluate": lambda: estimator.evaluate(eval_input, steps=2),
        "predict": lambda: list(predictions),
        "predict and close": lambda: (next(predictions), predictions.close()),
    }
    monkeypatch.setattr(Feed, "close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        calls[call]()
    assert len(ends) == 2
    assert ends[1][0]
    assert isinstance(ends[1][1], KeyboardInterrupt)
    if call == "train":
        ended = json.loads((tmp_path / "m" / "run.json").read_text())["ended"]
        assert ended == {"step": 6, "reason": "KeyboardInterrupt: ", "failed": True}
    assert not Path(estimator.eval_dir()).exists()


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray, lambda array: [array]])
def test_large_arrays_of_which_one_number_differs_are_told_apart(tmp_path: Path, kind: Any) -> None:
    """numpy shows only their first and last numbers."""
    table = np.zeros(5000, np.float32)
    write_run_record(tmp_path, config=ec.RunConfig(), params={"table": kind(table)}, call={}, plugins=[])
    assert changed_hparams(tmp_path, {"table": kind(table.copy())}) == ""
    table[2500] = 7
    assert changed_hparams(tmp_path, {"table": kind(table)}).startswith("table was ...")


def test_a_large_array_of_objects_and_keys_have_their_texts() -> None:
    objects = np.array([None] * 5000)
    for value in (objects, jax.random.split(jax.random.key(0), 5000)):
        assert plain(value) == repr(value)
