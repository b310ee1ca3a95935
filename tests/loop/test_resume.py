"""Tests of interrupted runs: they end with bitwise the same weights as uninterrupted runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimator_core as ec


class Crash(ec.Hook):
    """Raises after a step."""

    def __init__(self, at: int) -> None:
        self.at = at

    def next_step(self, step: int) -> int | None:
        return self.at if step < self.at else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        raise OSError("power cut")


def bits(estimator: ec.Estimator) -> dict[str, bytes]:
    return {name: value.tobytes() for name, value in estimator.variables.items()}


@pytest.mark.parametrize(
    ("k", "crash_at"),
    [
        *((1, 1), (1, 10), (4, 9), (4, 17), (4, 29)),
        *(pytest.param(*pair, marks=pytest.mark.slow) for pair in [(1, 9), (1, 17), (1, 29), (4, 1), (4, 10)]),
    ],
)
def test_crash_and_restart_gives_the_same_bits(
    make_estimator: Any, train_input: Any, tmp_path: Path, crash_at: int, k: int
) -> None:
    whole = make_estimator(model_dir=tmp_path / "whole", steps_per_dispatch=k).train(train_input, max_steps=30)
    broken = make_estimator(model_dir=tmp_path / "broken", steps_per_dispatch=k)
    with pytest.raises(OSError, match="power cut"):
        broken.train(train_input, hooks=[Crash(crash_at)], max_steps=30)
    again = make_estimator(model_dir=tmp_path / "broken", steps_per_dispatch=k).train(train_input, max_steps=30)
    assert bits(again) == bits(whole)


def test_examples_are_seen_once_an_epoch_over_a_restart(make_estimator: Any, data: Any, tmp_path: Path) -> None:
    drawn: list[float] = []

    class Watch(ec.Hook):
        def next_step(self, step: int) -> int | None:
            return step + 1

        def after_step(self, run: Any, step: int, out: Any) -> None:
            if step > len(drawn):
                drawn.append(float(run.batch.features["x"][:, 0].sum()))

    epoch = ec.inputs.numpy_input_fn({"x": data.x}, data.y, batch_size=8, num_epochs=2, shuffle=True, seed=5)
    with pytest.raises(OSError, match="power cut"):
        make_estimator(save_checkpoints_steps=3).train(epoch, hooks=[Watch(), Crash(5)])
    make_estimator(save_checkpoints_steps=3).train(epoch, hooks=[Watch()])
    whole: list[float] = [float(features["x"][:, 0].sum()) for features, _ in epoch()]
    assert drawn == pytest.approx(whole)
    assert len(drawn) == 10


def test_a_finished_epoch_starts_anew(make_estimator: Any, data: Any) -> None:
    epoch = ec.inputs.numpy_input_fn({"x": data.x}, data.y, batch_size=8, num_epochs=1, shuffle=True, seed=5)
    assert make_estimator().train(epoch).history.stop_reason == "the input ended"
    estimator = make_estimator().train(epoch)
    assert estimator.latest_checkpoint().endswith("/10")


def test_another_batch_size_goes_on_behind_the_examples_seen(make_estimator: Any, data: Any) -> None:
    def input_of(batch_size: int) -> Any:
        return ec.inputs.numpy_input_fn({"x": data.x}, data.y, batch_size=batch_size, num_epochs=1, shuffle=False)

    make_estimator().train(input_of(8), steps=2)
    seen: list[np.ndarray] = []

    class Watch(ec.Hook):
        def next_step(self, step: int) -> int | None:
            return step + 1

        def after_step(self, run: Any, step: int, out: Any) -> None:
            seen.append(run.batch.features["x"])

    make_estimator().train(input_of(4), hooks=[Watch()])
    assert np.array_equal(np.concatenate(seen), data.x[16:])


def test_seed_decides_the_weights(make_estimator: Any, train_input: Any, tmp_path: Path) -> None:
    one, same, other = (
        make_estimator(model_dir=tmp_path / name, tf_random_seed=seed).train(train_input, steps=3)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert bits(one) == bits(same)
    assert bits(one) != bits(other)


def test_an_unseeded_run_keeps_its_seed_over_a_restart(make_estimator: Any, train_input: Any) -> None:
    first = make_estimator(tf_random_seed=None).train(train_input, steps=3)
    seed = np.asarray(first._state.state.clock)[2:]
    second = make_estimator(tf_random_seed=None).train(train_input, steps=3)
    assert np.array_equal(np.asarray(second._state.state.clock)[2:], seed)


@pytest.mark.parametrize("crash", [False, True])
def test_an_input_that_ends_where_a_checkpoint_is_due_ends_the_call(
    make_estimator: Any, data: Any, train_input: Any, crash: bool
) -> None:
    class Resumed(ec.Hook):
        seen: bool | None = None

        def after_create(self, run: Any) -> None:
            self.seen = run.resumed

    five = ec.inputs.numpy_input_fn({"x": data.x}, data.y, batch_size=8, num_epochs=1, shuffle=False)
    if crash:
        with pytest.raises(OSError, match="power cut"):
            make_estimator(save_checkpoints_steps=5).train(train_input, hooks=[Crash(6)])
    else:
        make_estimator(save_checkpoints_steps=5).train(five)
    hook = Resumed()
    make_estimator(save_checkpoints_steps=5).train(train_input, hooks=[hook], steps=1)
    assert hook.seen is crash


@pytest.mark.parametrize(("damage", "max_steps"), [("truncated", 20), ("flipped", 20), ("flipped", 15)])
def test_a_run_whose_last_checkpoint_is_damaged_makes_its_steps_again(
    make_estimator: Any, train_input: Any, tmp_path: Path, damage: str, max_steps: int
) -> None:
    whole = make_estimator(model_dir=tmp_path / "whole").train(train_input, max_steps=max_steps)
    last = Path(make_estimator().train(train_input, max_steps=20).latest_checkpoint())
    file = max((one for one in (last / "arrays").rglob("*") if one.is_file()), key=lambda one: one.stat().st_size)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data if damage == "flipped" else data[:10])
    again = make_estimator().train(train_input, max_steps=max_steps)
    assert bits(again) == bits(whole)
    assert again.latest_checkpoint().endswith(f"/{max_steps}")
    assert last.with_name("damaged-20").is_dir()
    over = make_estimator().train(train_input, max_steps=max_steps)
    assert over.stop_reason == f"max_steps ({max_steps}) was reached before"
