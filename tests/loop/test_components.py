"""Tests of `RunConfig(components=...)`, which selects the component for a role of the core."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import estimator_core as ec
from estimator_core._plugins import Plugins
from estimator_core._plugins.records import Component
from estimator_core.errors import (
    ArgumentError,
    ArgumentTypeError,
    ExportError,
    NanLossDuringTrainingError,
    PluginError,
    PluginLookupError,
)
from estimator_core.testing import array_format
from tests.loop.conftest import linear_model_fn

MADE: list[tuple[str, dict[str, Any]]] = []


class Log(ec.Hook):
    def __init__(self, every_n_iter: int) -> None:
        MADE.append(("log", {"every_n_iter": every_n_iter}))


class Counter(ec.Hook):
    def __init__(self, **arguments: Any) -> None:
        MADE.append(("counter", arguments))


class Plain(ec.Hook):
    def __init__(self) -> None:
        MADE.append(("plain", {}))


class Demanding(ec.Hook):
    def __init__(self, address: str) -> None:
        raise AssertionError("never made")


class Strict:
    def difference(self, expected: np.ndarray, found: np.ndarray) -> str | None:
        return "is refused on principle."


def no_hook() -> int:
    return 7


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Plugins:
    MADE.clear()
    module = ModuleType("acme_components")
    module.__dict__.update(Log=Log, Counter=Counter, Plain=Plain, Demanding=Demanding, Strict=Strict, no_hook=no_hook)
    monkeypatch.setitem(sys.modules, "acme_components", module)
    targets = {"acme_log": "Log", "acme_counter": "Counter", "acme_plain": "Plain", "acme_demanding": "Demanding"}
    hooks = {**targets, "acme_no_hook": "no_hook", "nan_tensor": "Plain"}
    plugin = SimpleNamespace(
        ESTIMATOR_PLUGIN_API=(1, 1),
        estimator_components=lambda: [
            *(Component(kind="hook", name=name, target=f"acme_components:{target}") for name, target in hooks.items()),
            Component(kind="export_check", name="acme_strict", target="acme_components:Strict"),
        ],
    )
    return Plugins(autoload=False, extra=[plugin, array_format], environ={}, strict=True)


@pytest.fixture
def make(tmp_path: Path, plugins: Plugins) -> Callable[..., ec.Estimator]:
    def make(params: Any = None, **config: Any) -> ec.Estimator:
        settings = {"model_dir": str(tmp_path / "model"), "tf_random_seed": 1, "log_step_count_steps": 5, **config}
        return ec.Estimator(linear_model_fn, config=ec.RunConfig(**settings), params=params or {}, plugins=plugins)

    return make


def test_the_defaults_are_components_of_the_core(make: Any, train_input: Any, plugins: Plugins, caplog: Any) -> None:
    caplog.set_level("INFO", logger="estimator_core")
    make().train(train_input, max_steps=5)
    assert MADE == []  # a plugin's component with the name of a default does not take the role automatically
    used = [(row["name"], row["distribution"]) for row in plugins.used() if row["kind"] == "hook"]
    assert used == [
        (name, "estimator-core") for name in ("logging_tensor", "nan_tensor", "step_counter", "summary_saver")
    ]
    assert "loss = " in caplog.text


def test_a_plugins_hook_takes_a_role_by_name(make: Any, train_input: Any, caplog: Any) -> None:
    caplog.set_level("INFO", logger="estimator_core")
    names = {"log": "acme_log", "step_counter": "acme_counter", "summary_saver": "acme_plain"}
    make(components=names).train(train_input, max_steps=5)
    # each receives the arguments of the role that it accepts
    assert MADE == [("counter", {"every_n_steps": 5}), ("plain", {}), ("log", {"every_n_iter": 5})]
    assert "loss = " not in caplog.text


def test_none_leaves_a_role_empty(make: Any, train_input: Any) -> None:
    poisoned = {"poison_after": 3}
    with pytest.raises(NanLossDuringTrainingError):
        make(params=poisoned, save_checkpoints_secs=None).train(train_input, max_steps=6)
    config = {"components": {"nan_tensor": None}, "save_checkpoints_secs": None}
    estimator = make(params=poisoned, **config).train(train_input, max_steps=6)
    assert estimator.stop_reason == "reached step 6"


def test_a_role_takes_a_qualified_name(make: Any, train_input: Any) -> None:
    with pytest.raises(PluginLookupError, match=r"components=\{'nan_tensor': 'nan_tensor'\}.*provided by 2 plugins"):
        make(components={"nan_tensor": "nan_tensor"}).train(train_input, max_steps=1)
    make(components={"nan_tensor": "estimator-core:nan_tensor"}).train(train_input, max_steps=1)
    assert MADE == []


@pytest.mark.parametrize("role", ["export_check", "coordinator", "log", "summary_saver"])
def test_a_name_that_does_not_exist_is_refused_before_training_also_where_its_role_waits(
    make: Any, train_input: Any, role: str
) -> None:
    estimator = make(components={role: "acme_missing"}, log_step_count_steps=None, save_summary_steps=None)
    with pytest.raises(PluginLookupError, match=rf"components=\{{'{role}': 'acme_missing'\}}\): there is no "):
        estimator.train(train_input, max_steps=1)
    assert estimator.latest_checkpoint() is None


def test_the_order_of_the_hooks_is_that_of_the_roles(make: Any, train_input: Any) -> None:
    events: list[str] = []

    class Noting(ec.Hook):
        def begin(self, run: Any) -> None:
            events.append(type(self).__name__)

    class User(Noting): ...

    Early, Late = (type(name, (Noting,), {}) for name in ("Early", "Late"))
    module = sys.modules["acme_components"]
    module.__dict__.update(Log=Late, Plain=Early)
    make(components={"log": "acme_log", "summary_saver": "acme_plain"}).train(train_input, hooks=[User()], max_steps=1)
    assert events == ["Early", "User", "Late"]


def test_a_cadence_that_is_off_leaves_its_roles_empty(make: Any, train_input: Any) -> None:
    names = {"log": "acme_log", "step_counter": "acme_counter", "summary_saver": "acme_plain"}
    make(components=names, log_step_count_steps=None, save_summary_steps=None).train(train_input, max_steps=2)
    assert MADE == []


def test_default_hooks_of_plugins_are_another_matter(make: Any, train_input: Any) -> None:
    make(components={"log": "acme_log"}, default_hooks=False).train(train_input, max_steps=2)
    assert [name for name, _ in MADE] == ["log"]


@pytest.mark.parametrize(
    ("components", "message"),
    [
        (
            {"log": "acme_lgo"},
            r"components=\{'log': 'acme_lgo'\}\): there is no hook 'acme_lgo'.\s+Did you mean 'acme_",
        ),
        ({"log": "acme_demanding"}, r"acme_demanding.* cannot be made for this role, which passes .*'every_n_iter'"),
        ({"log": "acme_no_hook"}, "returned an object of int, which does not implement Hook"),
    ],
    ids=["unknown name", "cannot be made", "no hook"],
)
def test_what_cannot_take_the_role_is_refused_before_the_first_step(
    make: Any, train_input: Any, components: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises((PluginError, PluginLookupError), match=message):
        make(components=components).train(train_input, max_steps=2)
    assert not list((tmp_path / "model").glob("checkpoints/*"))


@pytest.mark.parametrize(
    ("components", "error", "message"),
    [
        ({"nan_tenser": None}, ArgumentError, r"no role 'nan_tenser'\. Did you mean 'nan_tensor'\? Roles are coordin"),
        ({"zzz": "a"}, ArgumentError, r"no role 'zzz'\. Roles are"),
        ({"export_check": None}, ArgumentError, r"components\['export_check'\] cannot be None"),
        ({"log": 3}, ArgumentTypeError, "should be the name of a component or None, given: 3"),
        ({"log": ""}, ArgumentTypeError, "should be the name of a component or None, given: ''"),
        (["log"], ArgumentTypeError, "should map roles to names"),
    ],
)
def test_what_no_run_can_use_is_refused_at_once(components: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ec.RunConfig(components=components)


def test_the_mapping_is_frozen_and_travels() -> None:
    given: dict[str, str | None] = {"log": "acme_log"}
    config = ec.RunConfig(components=given)
    given["nan_tensor"] = None
    assert dict(config.components) == {"log": "acme_log"}
    with pytest.raises(TypeError):
        config.components["log"] = "other"  # type: ignore[index]
    for other in (copy.deepcopy(config), pickle.loads(pickle.dumps(config)), config.replace(debug=True)):
        assert other.components == config.components
    assert dict(config.replace(components={"log": None}).components) == {"log": None}


def test_the_run_record_says_who_took_which_role(make: Any, train_input: Any, tmp_path: Path) -> None:
    make(components={"log": "acme_log", "nan_tensor": None}).train(train_input, max_steps=1)
    assert '"components": {"log": "acme_log", "nan_tensor": null}' in (tmp_path / "model" / "run.json").read_text()


def test_the_check_of_exports_is_taken_by_name(make: Any, train_input: Any, tmp_path: Path) -> None:
    def receiver() -> Any:
        return ec.export.ServingInputReceiver({"x": ec.export.Feature((None, 3))})

    estimator = make().train(train_input, max_steps=1)
    assert estimator.export_saved_model(str(tmp_path / "exports"), receiver, format="arrays")
    strict = make(components={"export_check": "acme_strict"})
    with pytest.raises(ExportError, match=r"output '\w+' is refused on principle"):
        strict.export_saved_model(str(tmp_path / "strict"), receiver, format="arrays")
    assert list((tmp_path / "strict").iterdir()) == []
    with pytest.raises(PluginLookupError, match=r"'export_check': 'acme_strct'.*no export_check 'acme_strct'"):
        make(components={"export_check": "acme_strct"}).export_saved_model(
            str(tmp_path / "none"), receiver, format="arrays"
        )
