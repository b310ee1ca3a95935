"""Tests of checkpoint policies of plugins: they decide when to save, and the Checkpointer does the rest."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import estimator_core as ec
from estimator_core._plugins import Component, Plugins
from estimator_core.builtin_hooks import CheckpointSaverHook
from estimator_core.checkpoint import all_checkpoints, read_checkpoint
from estimator_core.errors import ArgumentError, HookError, PluginError, PreemptedError
from estimator_core.hooks import CheckpointPolicy, Wake
from estimator_core.testing import array_format
from tests.loop.conftest import linear_model_fn

CALLS: list[Any] = []


class Doubling(CheckpointPolicy):
    """Saves at powers of two, keeps the saved steps as its state, and records the calls it receives."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def at_start(self, run: Any) -> bool:
        CALLS.append(("at_start", run.step, run.resumed, list(self.seen)))
        return False

    def next_step(self, step: int) -> int:
        return 2 ** step.bit_length()

    def saved(self, run: Any, step: int) -> None:
        self.seen.append(step)

    def at_end(self, run: Any) -> bool:
        CALLS.append(("at_end", run.step))
        return False

    def state(self) -> Mapping[str, Any]:
        return {"seen": self.seen}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.seen = list(state["seen"])


class Told(CheckpointPolicy):
    def __init__(self, save_steps: int | None, save_secs: float | None) -> None:
        CALLS.append((save_steps, save_secs))


class Late(Doubling):
    """Declares that it may be called late, which has no effect for a policy."""

    def next_step(self, step: int) -> Any:
        return Wake(step=super().next_step(step), within=1)


class Rich(CheckpointPolicy):
    def state(self) -> Mapping[str, Any]:
        return {"finished": 1}


def raising(method: str) -> type[CheckpointPolicy]:
    def fail(self: Any, *arguments: Any) -> Any:
        raise ZeroDivisionError("broken")

    return type("Raising", (Doubling,), {method: fail, "__module__": "acme_policies"})


class Log(ec.Hook):
    def after_create(self, run: Any) -> None:
        CALLS.append("log")


class Strict:
    def difference(self, expected: np.ndarray, found: np.ndarray) -> str | None:
        CALLS.append("check")
        return None


class Terminate(ec.Hook):
    def __init__(self, at: int) -> None:
        self.at = at

    def next_step(self, step: int) -> int | None:
        return self.at if step < self.at else None

    def after_step(self, run: Any, step: int, out: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


class Breaks(Terminate):
    def after_step(self, run: Any, step: int, out: Any) -> None:
        raise OSError(f"lost at step {step}")


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    CALLS.clear()
    module = ModuleType("acme_policies")
    classes = (Doubling, Told, Late, Rich, Log, Strict)
    module.__dict__.update({one.__name__: one for one in classes}, Broken=Doubling)
    monkeypatch.setitem(sys.modules, "acme_policies", module)
    return module


@pytest.fixture
def make(tmp_path: Path, acme: ModuleType) -> Callable[..., ec.Estimator]:
    policies = ("Doubling", "Told", "Late", "Rich", "Broken", "Log")

    def components() -> list[Component]:
        return [
            *(
                Component(kind="checkpoint_policy", name=name.lower(), target=f"acme_policies:{name}")
                for name in policies
            ),
            Component(kind="hook", name="acme_log", target="acme_policies:Log"),
            Component(kind="export_check", name="acme_strict", target="acme_policies:Strict"),
        ]

    plugin = SimpleNamespace(ESTIMATOR_PLUGIN_API=(1, 1), estimator_components=components)

    def make(policy: str | None, **config: Any) -> ec.Estimator:
        settings = {"model_dir": str(tmp_path / "m"), "tf_random_seed": 1, "keep_checkpoint_max": None, **config}
        settings["components"] = {"checkpoint_policy": policy, **config.get("components", {})}
        plugins = Plugins(autoload=False, extra=[plugin, array_format], environ={}, strict=True)
        return ec.Estimator(linear_model_fn, config=ec.RunConfig(**settings), params={}, plugins=plugins)

    return make


def saved(estimator: ec.Estimator) -> list[int]:
    return sorted(int(Path(path).name) for path in all_checkpoints(estimator.model_dir))


def test_a_policy_by_name_decides_when_and_alone(make: Any, train_input: Any) -> None:
    estimator = make("doubling", save_checkpoints_steps=3).train(train_input, max_steps=20)
    assert saved(estimator) == [1, 2, 4, 8, 16]
    assert CALLS == [("at_start", 0, False, []), ("at_end", 20)]


def test_it_goes_on_with_its_memory_after_an_error(make: Any, train_input: Any) -> None:
    with pytest.raises(OSError, match="lost at step 11"):
        make("doubling").train(train_input, max_steps=20, hooks=[Breaks(11)])
    estimator = make("doubling").train(train_input, max_steps=20)
    assert saved(estimator) == [1, 2, 4, 8, 16]
    assert CALLS[1] == ("at_start", 8, True, [1, 2, 4, 8])
    assert read_checkpoint(all_checkpoints(estimator.model_dir)[-1]).hooks["CheckpointSaverHook"] == {
        "seen": [1, 2, 4, 8, 16],
        "policy": "Doubling",
        "finished": False,
    }


def test_an_interruption_is_saved_without_asking_it(make: Any, train_input: Any) -> None:
    with pytest.raises(PreemptedError):
        make("doubling").train(train_input, max_steps=20, hooks=[Terminate(6)])
    assert [one[0] for one in CALLS] == ["at_start"]
    estimator = make("doubling").train(train_input, max_steps=20)
    assert saved(estimator) == [1, 2, 4, 6, 8, 16]
    assert CALLS[1] == ("at_start", 6, True, [1, 2, 4])


def test_the_memory_of_another_policy_is_left_alone(make: Any, train_input: Any) -> None:
    with pytest.raises(OSError, match="lost"):
        make("doubling").train(train_input, max_steps=20, hooks=[Breaks(5)])
    names = {"checkpoint_policy": "estimator-core:cadence"}
    estimator = make(None, components=names, save_checkpoints_steps=5).train(train_input, max_steps=15)
    assert saved(estimator) == [1, 2, 4, 9, 14, 15]


def test_none_saves_nothing(make: Any, train_input: Any, tmp_path: Path) -> None:
    estimator = make(None, save_checkpoints_steps=3).train(train_input, max_steps=7)
    assert saved(estimator) == []
    with pytest.raises(ArgumentError, match="There should be a CheckpointSaverHook"):
        make(None, save_checkpoints_steps=3).train(train_input, saving_listeners=[ec.CheckpointListener()], steps=1)


def test_one_among_the_hooks_wins(make: Any, train_input: Any) -> None:
    hook = CheckpointSaverHook(save_steps=7)
    assert saved(make("doubling").train(train_input, max_steps=16, hooks=[hook])) == [0, 7, 14, 16]
    assert CALLS == []


def test_a_component_is_made_with_the_cadence_of_the_config(make: Any, train_input: Any) -> None:
    make("told", save_checkpoints_steps=3).train(train_input, max_steps=2)
    make("told", save_checkpoints_steps=None, save_checkpoints_secs=None).train(train_input, max_steps=4)
    assert CALLS == [(3, None), (None, None)]


def test_a_save_is_never_late(make: Any, train_input: Any) -> None:
    estimator = make("late", steps_per_dispatch=1).train(train_input, max_steps=20)
    assert saved(estimator) == [1, 2, 4, 8, 16]


@pytest.mark.parametrize("method", ["at_start", "next_step", "saved", "at_end", "state"])
def test_one_that_raises_is_named_with_its_package(make: Any, acme: ModuleType, train_input: Any, method: str) -> None:
    acme.__dict__["Broken"] = raising(method)
    with pytest.raises(ZeroDivisionError, match="broken") as raised:
        make("broken").train(train_input, max_steps=3)
    (note,) = raised.value.__notes__
    assert note.startswith(f"in checkpoint policy Raising from module acme_policies, {method}, step ")


@pytest.mark.parametrize("answer", [0, -1, "soon", Wake(step=0)])
def test_a_step_that_is_none_is_refused(make: Any, acme: ModuleType, train_input: Any, answer: Any) -> None:
    acme.__dict__["Broken"] = type("Past", (Doubling,), {"next_step": lambda self, step: answer})
    with pytest.raises(HookError, match=r"checkpoint policy Past .*next_step\(0\) returned .*must return a later step"):
        make("broken").train(train_input, max_steps=3)


def test_what_is_no_policy_is_refused(make: Any, train_input: Any) -> None:
    with pytest.raises(PluginError, match="which does not implement CheckpointPolicy"):
        make("log").train(train_input, max_steps=3)


def test_names_of_the_memory_that_are_taken_are_refused(make: Any, train_input: Any) -> None:
    with pytest.raises(HookError, match=r"policy Rich .*state\(\) uses the names \['finished'\]"):
        make("rich").train(train_input, max_steps=3)


def test_train_and_evaluate_saves_the_last_step_anyway(make: Any, train_input: Any, eval_input: Any) -> None:
    estimator = make("doubling")
    metrics, _ = ec.train_and_evaluate(
        estimator, ec.TrainSpec(train_input, max_steps=10), ec.EvalSpec(eval_input, throttle_secs=0)
    )
    assert saved(estimator) == [1, 2, 4, 8, 10]
    assert metrics["global_step"] == 10
    steps = sorted(ec.read_eval_metrics(estimator.eval_dir()))
    assert steps == [1, 2, 4, 8, 10]


def test_one_plugin_replaces_policy_log_and_export_check_in_one_run(
    make: Any, train_input: Any, tmp_path: Path, caplog: Any
) -> None:
    caplog.set_level("INFO", logger="estimator_core")
    estimator = make("doubling", components={"log": "acme_log", "export_check": "acme_strict"})
    estimator.train(train_input, max_steps=5)

    def receiver() -> Any:
        return ec.export.ServingInputReceiver({"x": ec.export.Feature((None, 3))})

    assert estimator.export_saved_model(str(tmp_path / "exports"), receiver, format="arrays")
    assert saved(estimator) == [1, 2, 4]
    assert "log" in CALLS
    assert "check" in CALLS
    assert "loss = " not in caplog.text
