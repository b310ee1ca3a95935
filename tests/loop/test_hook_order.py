"""Tests of the order in which hooks and listeners are called."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar

import optax
import pytest

import estimator_core as ec
from estimator_core.hooks import CheckpointPolicy
from estimator_core.plugins import Plugins
from tests.loop.conftest import linear_model_fn


class Listener(ec.CheckpointListener):
    def __init__(self, name: str, log: list[Any], stop_at: int | None = None) -> None:
        self.name, self.log, self.stop_at = name, log, stop_at

    def begin(self, run: Any) -> None:
        self.log.append((self.name, "begin"))

    def before_save(self, run: Any, step: int) -> None:
        self.log.append((self.name, "before_save", step))

    def after_save(self, run: Any, step: int, checkpoint: Any) -> bool | None:
        self.log.append((self.name, "after_save", step))
        assert checkpoint.path.endswith(f"/{step}")
        return step == self.stop_at

    def end(self, run: Any, step: int) -> None:
        self.log.append((self.name, "end", step))


def model_with(chief: Any, hook: Any) -> Callable[..., Any]:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weights = ec.get_variable("w", (3,))
        loss = ((features["x"] @ weights - labels) ** 2).mean()
        return ec.EstimatorSpec(
            mode, loss=loss, train_op=optax.sgd(0.1), training_chief_hooks=[chief], training_hooks=[hook]
        )

    return model_fn


def test_training_order(make_estimator: Any, train_input: Any, recorder: Any, tmp_path: Any) -> None:
    log: list[Any] = []
    chief, spec_hook, one, two = (recorder(name, log) for name in ("chief", "train", "u1", "u2"))
    listeners = [Listener("l1", log), Listener("l2", log)]
    config = ec.RunConfig(
        model_dir=str(tmp_path),
        save_checkpoints_steps=10,
        default_hooks=False,
        log_step_count_steps=None,
        save_summary_steps=None,
    )
    ec.Estimator(model_with(chief, spec_hook), config=config).train(
        train_input, hooks=[one, two], max_steps=3, saving_listeners=listeners
    )
    names = ["chief", "u1", "u2", "train"]
    step = [
        [(name, "before_step", number) for name in names] + [(name, "after_step", number + 1) for name in names]
        for number in range(3)
    ]
    expected = [
        # hooks of the call begin before the input is drawn, hooks of the spec once it is known (trap 17)
        ("l1", "begin"), ("l2", "begin"), ("u1", "begin"), ("u2", "begin"), ("chief", "begin"), ("train", "begin"),
        ("l1", "before_save", 0), ("l2", "before_save", 0), ("l1", "after_save", 0), ("l2", "after_save", 0),
        *[(name, "after_create", 0) for name in names],
        *step[0], *step[1], *step[2],
        ("l1", "before_save", 3), ("l2", "before_save", 3), ("l1", "after_save", 3), ("l2", "after_save", 3),
        ("l1", "end", 3), ("l2", "end", 3),
        *[(name, "end", 3) for name in names],
    ]  # fmt: skip
    assert log == expected


def test_a_listener_may_stop_at_the_first_save_too(make_estimator: Any, train_input: Any, steps_saved: Any) -> None:
    log: list[Any] = []
    estimator = make_estimator().train(
        train_input, saving_listeners=[Listener("l", log, stop_at=0)], max_steps=30
    )  # fault 9
    assert steps_saved(estimator) == [0]
    estimator = make_estimator().train(train_input, saving_listeners=[Listener("l", log, stop_at=10)], max_steps=30)
    assert steps_saved(estimator) == [0, 10]


def test_a_listener_given_twice_is_called_once(make_estimator: Any, train_input: Any) -> None:
    log: list[Any] = []
    listener = Listener("l", log)
    make_estimator().train(train_input, saving_listeners=[listener, listener], steps=1)
    assert log.count(("l", "begin")) == 1


@pytest.mark.parametrize("method", ["begin", "before_save", "after_save", "end"])
def test_a_listener_that_raises_is_named_with_its_package(make_estimator: Any, train_input: Any, method: str) -> None:
    def fail(*arguments: Any) -> None:
        raise ZeroDivisionError("broken")

    broken = type("Broken", (ec.CheckpointListener,), {method: fail, "__module__": __name__})()
    with pytest.raises(ZeroDivisionError, match="broken") as raised:
        make_estimator().train(train_input, saving_listeners=[broken], steps=1)
    (note,) = raised.value.__notes__
    assert re.match(rf"in checkpoint listener Broken from \S.*, {method}, step [01] of mode 'train'$", note)


def test_an_error_that_takes_no_notes_stays_as_it_is(make_estimator: Any, train_input: Any) -> None:
    class Sealed(Exception):
        def add_note(self, note: str, /) -> None:
            raise AttributeError("cannot assign to field '__notes__'")

    class Broken(ec.Hook):
        def begin(self, run: ec.Run) -> None:
            raise Sealed("broken")

    with pytest.raises(Sealed, match="broken"):
        make_estimator().train(train_input, hooks=[Broken()], steps=1)


class Failing(ec.Hook):
    def __init__(self, method: str) -> None:
        setattr(self, method, self._fail)

    def next_step(self, step: int) -> int | None:
        return step + 1

    def _fail(self, *arguments: Any) -> None:
        raise ZeroDivisionError("broken")


@pytest.mark.parametrize("method", ["begin", "after_create", "before_step", "after_step", "end", "next_step", "state"])
def test_end_runs_for_all_and_the_error_says_where(
    make_estimator: Any, train_input: Any, recorder: Any, method: str
) -> None:
    log: list[Any] = []
    hooks = [recorder("first", log), Failing(method), recorder("last", log)]
    with pytest.raises(ZeroDivisionError, match="broken") as raised:
        make_estimator().train(train_input, hooks=hooks, steps=2)
    ended = [entry[0] for entry in log if entry[1] == "end"]
    assert ended == (["first"] if method == "begin" else ["first", "last"])
    assert any("hook Failing" in note and method in note and "step" in note for note in raised.value.__notes__)
    assert len([note for note in raised.value.__notes__ if "hook Failing" in note]) == 1
    # no lock remains; the run had saved only if `end` itself failed
    assert make_estimator().train(train_input, steps=1).stop_reason == f"reached step {3 if method == 'end' else 1}"


def test_sparse_cadences_do_not_disturb_each_other(make_estimator: Any, train_input: Any, recorder: Any) -> None:
    log: list[Any] = []
    make_estimator(
        steps_per_dispatch=20, save_summary_steps=None, log_step_count_steps=None, save_checkpoints_steps=50
    ).train(train_input, hooks=[recorder("seven", log, every=7), recorder("fifty", log, every=50)], max_steps=100)
    assert [entry[2] for entry in log if entry[:2] == ("seven", "after_step")] == list(range(7, 101, 7))
    assert [entry[2] for entry in log if entry[:2] == ("fifty", "after_step")] == [50, 100]


class Values(ec.Hook):
    def __init__(self) -> None:
        self.seen: list[tuple[int, float]] = []

    def begin(self, run: Any) -> None:
        run.follow("loss")

    def on_values(self, run: Any, steps: range, values: Any) -> None:
        self.seen.extend(zip(steps, values["loss"].tolist(), strict=True))


@pytest.mark.parametrize("k", [pytest.param(1, marks=pytest.mark.slow), 8])
def test_values_of_every_step_force_no_boundary(make_estimator: Any, train_input: Any, k: int, tmp_path: Any) -> None:
    hook, every = Values(), Values()
    make_estimator(steps_per_dispatch=k, model_dir=tmp_path / "a").train(train_input, hooks=[hook], max_steps=300)
    make_estimator(model_dir=tmp_path / "b").train(train_input, hooks=[every], max_steps=300)
    assert [step for step, _ in hook.seen] == list(range(1, 301))
    assert [loss for _, loss in hook.seen] == pytest.approx([loss for _, loss in every.seen], rel=1e-5)


def test_outputs_of_a_dispatch(make_estimator: Any, train_input: Any) -> None:
    seen: dict[int, Any] = {}

    class Look(ec.Hook):
        def begin(self, run: Any) -> None:
            run.fetch("errors")

        def next_step(self, step: int) -> int | None:
            return (step // 8 + 1) * 8

        def after_step(self, run: Any, step: int, out: Any) -> None:
            seen[step] = (out["loss"].shape, out.all("loss").shape, out["errors"].shape, list(out.steps))

    make_estimator(
        steps_per_dispatch=4, save_checkpoints_steps=8, save_summary_steps=None, log_step_count_steps=None
    ).train(train_input, hooks=[Look()], max_steps=16)
    assert seen == {8: ((), (4,), (8,), [5, 6, 7, 8]), 16: ((), (4,), (8,), [13, 14, 15, 16])}


def test_an_unknown_output_is_named_with_near_matches(make_estimator: Any, train_input: Any) -> None:
    class Ask(ec.Hook):
        def begin(self, run: Any) -> None:
            run.fetch("eror")

    with pytest.raises(ec.EstimatorError, match=r"no output 'eror'\. Did you mean 'errors'"):
        make_estimator().train(train_input, hooks=[Ask()], steps=1)


def calls_of(log: list[Any], name: str, method: str) -> int:
    return len([entry for entry in log if entry[:2] == (name, method)])


@pytest.mark.parametrize("field", ["chief", "hook"])
def test_a_hook_of_the_call_and_of_the_spec_is_called_once(
    train_input: Any, recorder: Any, tmp_path: Any, field: str
) -> None:
    log: list[Any] = []
    both, other = recorder("both", log), recorder("other", log)
    model_fn = model_with(**{"chief": other, "hook": other, field: both})
    ec.Estimator(model_fn, str(tmp_path)).train(train_input, hooks=[both, both], max_steps=1)
    for method in ("begin", "after_create", "before_step", "after_step", "end"):
        assert (calls_of(log, "both", method), calls_of(log, "other", method)) == (1, 1), method


@pytest.mark.parametrize("call", ["evaluate", "predict"])
def test_a_hook_given_twice_is_called_once(
    make_estimator: Any, train_input: Any, eval_input: Any, recorder: Any, call: str
) -> None:
    log: list[Any] = []
    hook = recorder("hook", log)
    estimator = make_estimator().train(train_input, max_steps=1)
    list(getattr(estimator, call)(eval_input, hooks=[hook, hook]))
    assert [calls_of(log, "hook", method) for method in ("begin", "after_create", "end")] == [1, 1, 1]
    assert calls_of(log, "hook", "after_step") == 3


def test_a_policy_among_the_hooks_of_a_plugin_is_a_hook_and_decides_no_save(
    train_input: Any, steps_saved: Any, tmp_path: Any
) -> None:
    log: list[int] = []

    class Both(CheckpointPolicy, ec.Hook):
        name: ClassVar[str | None] = None  # both contracts have it

        def next_step(self, step: int) -> int:
            return step + 1

        def after_step(self, run: Any, step: int, out: Any) -> None:
            log.append(step)

    plugin = ModuleType("both")
    plugin.ESTIMATOR_PLUGIN_API = (1, 0)  # type: ignore[attr-defined]
    plugin.estimator_run_hooks = lambda run: [Both()]  # type: ignore[attr-defined]
    config = ec.RunConfig(model_dir=str(tmp_path / "model"), save_checkpoints_steps=10)
    estimator = ec.Estimator(linear_model_fn, config=config, params={}, plugins=Plugins(extra=[plugin]))
    estimator.train(train_input, max_steps=3)
    assert log == [1, 2, 3]
    assert steps_saved(estimator) == [0, 3]
