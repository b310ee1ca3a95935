"""Tests that every field of RunConfig has an effect: two values of the field, and the difference."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core._checkpoint.catalog import all_checkpoints
from estimator_core.testing import run_with_devices

#: The fields whose effects have separate tests.
ELSEWHERE = {
    "check_inputs": "tests/loop/test_settings.py::test_a_data_contract_checks_unless_it_is_switched_off",
    "compile_cache": "tests/loop/test_compile_cache.py",
    "full_checkpoint_every": (
        "tests/packs/test_training.py::test_it_ends_with_the_same_bits_also_where_it_was_begun_anew"
    ),
    "grace_secs": ("tests/loop/test_interruption.py::test_when_the_grace_time_is_over_the_log_says_what_is_waited_for"),
    "batches_per_dispatch": "tests/loop/test_groups.py::test_groups_are_asked_for_by_a_number",
    "mesh": "tests/loop/test_settings.py::test_mesh_and_partition_rules_place_the_variables",
    "partition_rules": "tests/loop/test_settings.py::test_mesh_and_partition_rules_place_the_variables",
    "logical_axis_rules": "tests/loop/test_settings.py::test_names_of_axes_stand_for_mesh_axes",
    "model_dir": "tests/loop/test_calls.py::test_the_run_is_recorded",
    "processes": "tests/scale/test_detect.py::test_run_config_takes_them",
    "default_hooks": "tests/plugins/test_run_level.py::test_run_config_switches_them_off",
    "plugins_lock": "tests/plugins/test_lock.py::test_a_run_config_locks_every_call",
    "keep_checkpoint_best": "tests/loop/test_train_and_evaluate.py::test_the_best_checkpoints_by_a_metric_stay",
    "keep_checkpoint_every_n_hours": "tests/loop/test_settings.py::test_one_checkpoint_an_hour_is_kept",
    "backend": "tests/plugins/test_hostile_runs.py::test_a_backend_asked_for_by_name",
    "components": "tests/loop/test_components.py::test_a_plugins_hook_takes_a_role_by_name",
}

Setting = tuple[Any, Any, Callable[..., Any]]


def batches(count: int = 12) -> Callable[[], Any]:
    x = np.linspace(0, 1, 24, dtype=np.float32).reshape(8, 3)
    return lambda: iter([({"x": x * (1 + step)}, x[:, 0]) for step in range(count)])


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    y = features["x"] @ ec.get_variable("w", (3,), jax.nn.initializers.normal())
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y})
    return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.01))


def estimator(model_dir: Path, **config: Any) -> ec.Estimator:
    settings = {"tf_random_seed": 1, "save_checkpoints_steps": None, "default_hooks": False, **config}
    return ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(model_dir), **settings))


def weights(path: Path, **config: Any) -> list[float]:
    return estimator(path, **config).train(batches(), steps=2).variables["w"].tolist()


def checkpoints(path: Path, **config: Any) -> int:
    estimator(path, **{"save_checkpoints_steps": 2, **config}).train(batches(), steps=8)
    return len(all_checkpoints(str(path)))


def points(path: Path, **config: Any) -> list[int]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    estimator(path, log_step_count_steps=None, **config).train(batches(), steps=8)
    events = EventAccumulator(str(path)).Reload()
    return [event.step for event in events.Scalars("loss")] if "loss" in events.Tags()["scalars"] else []


def rows(path: Path, **config: Any) -> list[int]:
    return [row["step"] for row in estimator(path, **config).train(batches(), steps=8).history.train]


def traces(path: Path, **config: Any) -> int:
    return estimator(path, log_step_count_steps=None, **config).train(batches(), steps=8).trace_counts["train"]


def drawing_threads(path: Path, **config: Any) -> bool:
    """Returns whether a thread other than the training thread draws the batches."""
    drawn_by: set[int] = set()

    def input_fn() -> Any:
        for batch in batches()():
            drawn_by.add(threading.get_ident())
            yield batch

    estimator(path, **config).train(input_fn, steps=3)
    return drawn_by != {threading.get_ident()}


def evaluation_loss(path: Path, **config: Any) -> float:
    trained = estimator(path, **config).train(batches(), steps=1)
    (features, labels), *_ = batches()()
    ragged = [(features, labels), ({"x": 3 * features["x"][:2]}, labels[:2])]
    return trained.evaluate(lambda: iter(ragged))["loss"]


def untrained(path: Path, **config: Any) -> str:
    try:
        return f"{len(estimator(path, **config).evaluate(batches(2)))} results"
    except ec.EstimatorError as error:
        return type(error).__name__


def cast(path: Path, **config: Any) -> str:
    def narrow(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        y = features["x"] @ ec.get_variable("w", (3,), dtype="bfloat16").astype(jnp.float32)
        return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.01))

    estimator(path, save_checkpoints_steps=1).train(batches(), steps=1)
    config = {"model_dir": str(path), "save_checkpoints_steps": 1, "default_hooks": False, **config}
    outcomes: list[str] = []
    for act in (lambda it: it.evaluate(batches(2)), lambda it: it.train(batches(), steps=1)):
        try:
            act(ec.Estimator(narrow, config=ec.RunConfig(**config)))
            outcomes.append("cast")
        except ec.EstimatorError as error:
            outcomes.append(type(error).__name__)
    return " ".join(outcomes)


def shapes_logged(path: Path, caplog: Any, **config: Any) -> bool:
    caplog.set_level(logging.INFO, "estimator_core")
    caplog.clear()
    estimator(path, **config).train(batches(), steps=1)
    return "variables/w: float32[3]" in caplog.text


def seen_by_model_fn(path: Path, **config: Any) -> list[Any]:
    """Returns the shapes and dtypes of the features in the traces of model_fn."""
    seen: list[Any] = []

    def watching(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        seen.append((features["x"].shape, features["x"].dtype))
        return model_fn(features, labels, mode)

    settings = {"model_dir": str(path), "save_checkpoints_steps": None, "default_hooks": False, **config}
    ec.Estimator(watching, config=ec.RunConfig(**settings)).train(batches(), steps=1)
    return seen


def step_flops(path: Path, **config: Any) -> float | None:
    """Returns the operations of the step, as XLA counts them before it optimises."""

    class Count(ec.Hook):
        def after_step(self, run: Any, step: int, out: Any) -> None:
            self.flops = run.step_flops()

    def deep(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        y = jnp.sin(jnp.sin(features["x"] @ ec.get_variable("w", (3,))))
        return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.01))

    count = Count()
    settings = {"model_dir": str(path), "save_checkpoints_steps": None, "default_hooks": False, **config}
    ec.Estimator(deep, config=ec.RunConfig(**settings)).train(batches(), hooks=[count], steps=1)
    return count.flops


def saves_in_a_slow_run(path: Path, **config: Any) -> bool:
    """Returns whether a step between the first and the last one was saved."""

    class Slow(ec.Hook):
        def after_step(self, run: Any, step: int, out: Any) -> None:
            time.sleep(0.02)

    estimator(path, **{"save_checkpoints_steps": None, **config}).train(batches(), hooks=[Slow()], steps=6)
    return len(all_checkpoints(str(path))) > 2


SETTINGS: dict[str, Setting] = {
    "tf_random_seed": (1, 2, weights),
    "save_summary_steps": (4, None, points),
    "save_checkpoints_steps": (2, 8, checkpoints),
    "save_checkpoints_secs": (0.01, 600, saves_in_a_slow_run),
    "keep_checkpoint_max": (2, None, checkpoints),
    "log_step_count_steps": (2, 4, rows),
    "accumulate_steps": (1, 2, seen_by_model_fn),
    "precision": ("float32", "bfloat16", seen_by_model_fn),
    "remat": ("none", "full", step_flops),
    "steps_per_dispatch": (1, 4, traces),
    "prefetch": (0, 2, drawing_threads),
    "eval_loss": ("batch_mean", "example_mean", evaluation_loss),
    "allow_untrained": (False, True, untrained),
    "allow_cast": (False, True, cast),
    "debug": (False, True, shapes_logged),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_two_values_give_two_results(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    one, other, observe = SETTINGS[name]
    more = {"caplog": request.getfixturevalue("caplog")} if observe is shapes_logged else {}
    first, again, second = (
        observe(tmp_path / place, **{name: value}, **more) for place, value in (("a", one), ("b", one), ("c", other))
    )
    assert first == again
    assert first != second


def test_every_field_has_its_test(request: pytest.FixtureRequest) -> None:
    names = {field.name for field in fields(ec.RunConfig)}
    assert names <= {*SETTINGS, *ELSEWHERE}
    root = Path(__file__).parents[2]
    for place in ELSEWHERE.values():
        file, _, test = place.partition("::")
        assert test in (root / file).read_text()


class Asked:
    """A data contract that records whether it is to check."""

    def __init__(self) -> None:
        self.checks: list[bool] = []

    def open(self, source: Any, *, mode: str, memory: Path, check: bool) -> tuple[Any, None]:
        """Returns the data unchanged."""
        self.checks.append(check)
        return source, None

    def transforms(self, memory: Path) -> tuple[()]:
        """None."""
        return ()


@pytest.mark.parametrize("check", [True, False])
def test_a_data_contract_checks_unless_it_is_switched_off(tmp_path: Path, check: bool) -> None:
    asked, config = Asked(), ec.RunConfig(model_dir=str(tmp_path), check_inputs=check)
    run = ec.Estimator(model_fn, config=config, data_contract=asked)
    run.train(batches(), steps=1)
    run.evaluate(batches(), steps=1)
    list(run.predict(batches()))
    assert asked.checks == [check] * 3


def test_allow_cast_serves_every_verb(tmp_path: Path) -> None:
    assert cast(tmp_path / "a", allow_cast=True) == "cast cast"


def test_one_checkpoint_an_hour_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10**6, 1000))  # seconds: a save every 1000
    monkeypatch.setattr("estimator_core._checkpoint.store.time", type("Clock", (), {"time": lambda: 1e9 + next(clock)}))
    config = {"save_checkpoints_steps": 1, "keep_checkpoint_max": 1, "keep_checkpoint_every_n_hours": 1}
    estimator(tmp_path, **config).train(batches(), steps=9)
    kept = [int(Path(path).name) for path in all_checkpoints(str(tmp_path))]
    assert kept[-1] == 9
    assert len(kept) > 1


def test_mesh_and_partition_rules_place_the_variables(tmp_path: Path) -> None:
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from test_settings import batches, estimator
trained = estimator(Path(sys.argv[2]), mesh={"data": -1}, partition_rules=RULES).train(batches(), steps=2)
w = trained._state.state.variables["w"]
values = [round(float(value), 4) for value in trained.variables["w"]]
print(len(w.sharding.device_set), w.addressable_shards[0].data.shape, values)
"""
    here, one = str(Path(__file__).parent), estimator(tmp_path / "one").train(batches(), steps=2).variables["w"]
    expected = [round(float(value), 4) for value in one]
    for place, rules, part in (("a", [], (3,)), ("b", [("w", ("data",))], (1,))):
        printed = run_with_devices(3, code.replace("RULES", repr(rules)), here, str(tmp_path / place))
        assert printed == f"3 {part} {expected}"


@pytest.mark.slow
def test_names_of_axes_stand_for_mesh_axes(tmp_path: Path) -> None:
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from test_settings import batches, estimator
for place, rules in (("a", {"inputs": "model"}), ("b", {"inputs": None}), ("c", {})):
    settings = {"mesh": {"model": -1}, "partition_rules": [("w", ("inputs",))], "logical_axis_rules": rules}
    w = estimator(Path(sys.argv[2]) / place, **settings).train(batches(), steps=2)._state.state.variables["w"]
    print(len(w.sharding.device_set), w.addressable_shards[0].data.shape, end="; ")
"""
    printed = run_with_devices(3, code, str(Path(__file__).parent), str(tmp_path))
    assert printed.strip() == "3 (1,); 3 (3,); 3 (3,);"
