"""Tests of a kill after the last save: every schedule and `estimator run` finish the rest without a further step."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

import estimator_core as ec
from estimator_core.cli import main
from estimator_core.journal import read_lineage
from estimator_core.storage import LocalStorage

PROGRAM = """
import json, os, shutil, time
from pathlib import Path
import jax.numpy as jnp, numpy as np, optax
import estimator_core as ec

HPARAMS = ec.HParams(train_steps=8)


def model_fn(features, labels, mode):
    y = features["x"] * ec.get_variable("slope", ())
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y})
    return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.1))


class Notes(ec.Hook):
    def next_step(self, step):
        return step + 1

    def after_step(self, run, step, out):
        self.note(["step", step])

    def end(self, run):
        self.note(["end", run.step])
        while not str(ec.latest_checkpoint(run.model_dir)).endswith(f"/{run.step}"):
            time.sleep(0.01)
        if not Path("killed").exists():
            shutil.copytree(run.model_dir, "killed", ignore=shutil.ignore_patterns("run.lock", ".draft-*"))

    def note(self, what):
        with open("noted", "a") as file:
            file.write(json.dumps(what) + "\\\\n")


def experiment_fn(run_config, hparams):
    x = np.linspace(-1, 1, 32, dtype=np.float32)
    inputs = dict(x={"x": x}, y=3 * x, batch_size=8, shuffle=False)
    config = run_config.replace(default_hooks=False, keep_checkpoint_max=None)
    return ec.Experiment(
        ec.Estimator(model_fn, config=config, params=None),
        ec.inputs.numpy_input_fn(**inputs, num_epochs=None),
        ec.inputs.numpy_input_fn(**inputs, num_epochs=1),
        train_steps=hparams.train_steps,
        train_hooks=[Notes()],
    )
""".replace("\\\\n", "\\n")


class Notes(ec.Hook):
    """Records steps and ends. At the first end, it copies the model_dir in the state that a kill leaves."""

    def __init__(self, copy_to: Path) -> None:
        self.copy_to, self.noted = copy_to, list[Any]()

    def next_step(self, step: int) -> int:
        return step + 1

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.noted.append(step)

    def end(self, run: Any) -> None:
        self.noted.append(("end", run.step))
        while not str(ec.latest_checkpoint(run.model_dir)).endswith(f"/{run.step}"):
            time.sleep(0.01)
        if not self.copy_to.exists():
            shutil.copytree(run.model_dir, self.copy_to, ignore=shutil.ignore_patterns("run.lock", ".draft-*"))


class Listens(ec.CheckpointListener):
    """Records the step of each end."""

    def __init__(self) -> None:
        self.ends = list[int]()

    def end(self, run: Any, step: int) -> None:
        self.ends.append(step)


@pytest.mark.parametrize(
    ("schedule", "noted"),
    [
        ("train", [("end", 8)]),
        ("train_and_evaluate", [("end", 8)]),
        ("continuous_train_and_eval", [("end", 4), 5, 6, 7, 8, ("end", 8)]),
    ],
)
def test_a_schedule_ends_what_is_left(
    make_estimator: Any, train_input: Any, eval_input: Any, tmp_path: Path, schedule: str, noted: list[Any]
) -> None:
    listeners = [Listens(), Listens()]
    hooks = [Notes(tmp_path / "killed"), Notes(tmp_path / "killed")]
    for hook, listener, directory in zip(hooks, listeners, (tmp_path / "whole", tmp_path / "killed"), strict=True):
        plan = ec.Experiment(
            make_estimator(model_dir=directory, keep_checkpoint_max=None),
            train_input,
            eval_input,
            train_steps=8,
            train_hooks=[hook],
            saving_listeners=[listener],
            train_steps_per_iteration=4,
        )
        getattr(plan, schedule)()
    assert hooks[1].noted == noted
    assert hooks[0].noted[-len(noted) :] == noted
    assert listeners[1].ends == [one[1] for one in noted if isinstance(one, tuple)]
    ended = read_lineage(LocalStorage(tmp_path / "killed")).ended
    assert ended is not None
    assert ended.step == 8


class Copies(ec.Hook):
    """Copies the model_dir in the state that a kill leaves, once it has a checkpoint."""

    def __init__(self, directory: Path, copy_to: Path, at: int, checkpoint: int) -> None:
        self.directory, self.copy_to, self.at, self.checkpoint = directory, copy_to, at, checkpoint

    def begin(self, run: Any) -> None:
        if run.mode == ec.ModeKeys.EVAL:
            self.copy_at(int(str(ec.latest_checkpoint(self.directory)).rpartition("/")[2]))

    def next_step(self, step: int) -> int:
        return step + 1

    def after_step(self, run: Any, step: int, out: Any) -> None:
        if run.mode == ec.ModeKeys.TRAIN:
            self.copy_at(step)

    def copy_at(self, step: int) -> None:
        if step != self.at or self.copy_to.exists():
            return
        while not str(ec.latest_checkpoint(self.directory)).endswith(f"/{self.checkpoint}"):
            time.sleep(0.01)
        shutil.copytree(self.directory, self.copy_to, ignore=shutil.ignore_patterns("run.lock", ".draft-*"))


@pytest.mark.parametrize(
    ("kind", "at", "ends"),
    [
        pytest.param("train_hooks", 7, [8, 12], id="within a round"),
        pytest.param("eval_hooks", 8, [12], id="before an evaluation"),
    ],
)
def test_rounds_are_those_of_a_run_that_was_not_killed(
    make_estimator: Any, train_input: Any, eval_input: Any, tmp_path: Path, kind: str, at: int, ends: list[int]
) -> None:
    copies = Copies(tmp_path / "whole", tmp_path / "killed", at, at // 2 * 2)
    hooks: Any = {kind: [copies]}
    listeners, metrics = list[Listens](), list[Any]()
    for directory in ("whole", "killed"):
        listeners.append(Listens())
        plan = ec.Experiment(
            make_estimator(model_dir=tmp_path / directory, save_checkpoints_steps=2),
            train_input,
            eval_input,
            train_steps=12,
            train_steps_per_iteration=4,
            saving_listeners=[listeners[-1]],
            **hooks,
        )
        metrics.append(plan.continuous_train_and_eval()[0])
    whole, killed = (ec.read_eval_metrics(tmp_path / directory / "eval") for directory in ("whole", "killed"))
    assert list(whole) == [4, 8, 12]
    assert killed == whole
    assert metrics[1] == metrics[0]
    assert [listener.ends for listener in listeners] == [[4, 8, 12], ends]


def test_estimator_run_ends_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("line.py").write_text(PROGRAM)
    assert main(["run", "line.py", "--model-dir", "whole"]) == 0
    Path("noted").unlink()
    assert main(["run", "line.py", "--model-dir", "killed"]) == 0
    assert [json.loads(line) for line in Path("noted").read_text().splitlines()] == [["end", 8]]
    ended = read_lineage(LocalStorage(Path("killed"))).ended
    assert ended is not None
    assert ended.step == 8
