"""A process that is killed and started again leaves the same lines, points and decisions as an uninterrupted one."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import estimator_core as ec
import estimator_hooks as eh

PROGRAM = """
import logging, os, signal, sys, time
logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s", stream=sys.stdout)
for name in ("absl", "jax", "orbax"):
    logging.getLogger(name).setLevel(logging.WARNING)
import estimator_core as ec
import estimator_hooks as eh
from plugins.hooks.tests import small_model

model_dir, kill_at, k, wait_for = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "True"

class KillsAt(eh.Hook):
    def next_step(self, step):
        return kill_at if step < kill_at else None

    def after_step(self, run, step, out):
        sys.stdout.flush()
        while wait_for and not os.path.exists(f"{model_dir}/checkpoints/{step // 20 * 20}"):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)

tx = eh.with_transformations(small_model.optimizer(), "clip_by_global_norm=1.0; ema_of_weights=0.9")
estimator = small_model.make_estimator(
    model_dir, tx, save_summary_steps=7, log_step_count_steps=9, steps_per_dispatch=k
)
hooks = [
    *([KillsAt()] if kill_at else []),
    eh.GradientNormHook(6),
    eh.LearningRateHook(6),
    eh.LoggingTensorHook(["loss", "batch_accuracy", "first_logit", "step"], every_n_iter=8),
    eh.HistoryHook(3),
    eh.SummarySaverHook(save_steps=5, output_dir=model_dir + "/own"),
    eh.AveragedWeightsEvaluatorHook(estimator, small_model.eval_input_fn(), name="ema", every_n_iter=15),
    eh.stop_if_no_decrease_hook(
        estimator, "loss", 30, eval_name="ema", min_steps=60, run_every_steps=11, restore_best=True
    ),
    eh.make_early_stopping_hook(estimator, lambda: False, run_every_steps=13),
]
ec.train_and_evaluate(
    estimator,
    ec.TrainSpec(small_model.train_input_fn(), max_steps=90, hooks=hooks),
    ec.EvalSpec(small_model.eval_input_fn(), name="val"),
)
print("stopped:", estimator.stop_reason)
"""
ROOT = Path(__file__).parents[4]


def run(model_dir: Path, kill_at: int = 0, k: int = 1, wait_for_save: bool = False) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(model_dir), str(kill_at), str(k), str(wait_for_save)],
        cwd=ROOT,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    model_dir = tmp_path_factory.mktemp("straight")
    status, lines = run(model_dir)
    assert status == 0
    return model_dir, lines


def scalars(directory: Path) -> dict[str, list[tuple[int, float | None]]]:
    """The points by tag. For rates only the steps, because their values depend on time."""
    events = EventAccumulator(str(directory), size_guidance={"scalars": 0, "histograms": 0}).Reload()
    points = {
        tag: [(event.step, None if tag.endswith("/sec") else event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }
    points.update(
        {f"{tag} (histogram)": [(e.step, None) for e in events.Histograms(tag)] for tag in events.Tags()["histograms"]}
    )
    return points


def logged(lines: list[str], *patterns: str) -> list[str]:
    """The log lines of some hooks, without times."""
    kept = [line for line in lines if any(re.search(pattern, line) for pattern in patterns)]
    return [re.sub(r" \(\d+\.\d+ sec\)", "", line) for line in kept]


@pytest.mark.slow
@pytest.mark.parametrize(("kill_at", "k", "saved"), [(23, 1, 20), (40, 1, None), (58, 1, 40), (37, 5, 20)])
def test_killed_and_resumed(straight: tuple[Path, list[str]], tmp_path: Path, kill_at: int, k: int, saved: int | None):
    model_dir, expected_lines = straight
    status, before = run(tmp_path, kill_at, k, wait_for_save=saved is not None)
    assert status == -signal.SIGKILL
    resumed_from = int(Path(str(ec.latest_checkpoint(str(tmp_path)))).name)
    assert saved in (None, resumed_from)
    status, after = run(tmp_path, 0, k)
    assert status == 0

    for folder in (".", "own", "eval_val", "eval_ema"):
        ours, expected = scalars(tmp_path / folder), scalars(model_dir / folder)
        assert ours.keys() == expected.keys()
        for tag in expected:
            assert [step for step, _ in ours[tag]] == [step for step, _ in expected[tag]], (folder, tag)
            if k == 1:
                assert ours[tag] == expected[tag], (folder, tag)
    assert [row["step"] for row in eh.read_history(tmp_path)] == [row["step"] for row in eh.read_history(model_dir)]
    if k == 1:
        assert eh.read_history(tmp_path) == eh.read_history(model_dir)
        jax.tree.map(np.testing.assert_array_equal, ec.load_variables(str(tmp_path)), ec.load_variables(str(model_dir)))
        assert ec.read_eval_metrics(tmp_path / "eval_val") == ec.read_eval_metrics(model_dir / "eval_val")

    # The lines of the killed process up to its last checkpoint, and of the resumed process after it.
    patterns = (r"first_logit = ", r"gradient_norm = ", r"^estimator_core loss = ")

    def step_of(line: str) -> int:
        return int(re.search(r"step = (\d+)", line)[1])  # type: ignore[index]

    joined = [line for line in logged(before, *patterns) if step_of(line) <= resumed_from] + logged(after, *patterns)
    assert [step_of(line) for line in joined] == [step_of(line) for line in logged(expected_lines, *patterns)]
    if k == 1:
        assert joined == logged(expected_lines, *patterns)
    assert logged(after, "^stopped") == logged(expected_lines, "^stopped")
    assert json.loads((tmp_path / "run.json").read_text())
