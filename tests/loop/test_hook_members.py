"""Tests of hooks that misuse a reserved name: a class is refused when it is defined, an object before it is called."""

from __future__ import annotations

from typing import Any
from unittest.mock import create_autospec

import pytest

import estimator_core as ec
from estimator_core._loop.hook_calls import in_order
from estimator_core.errors import HookError
from estimator_core.specs import check_listeners
from estimator_core.testing import drive


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("after_stp", "did you mean 'after_step'"),
        ("on_value", "did you mean 'on_values'"),
        ("next_time", r"Wake\(time=...\) returned by next_step"),
        ("comes_along", r"Wake\(joins=True\) returned by next_step"),
        ("values", r"run.follow\(name\), called in begin"),
        ("settle", "`settle` was removed"),
    ],
)
def test_a_reserved_name_is_refused_with_its_cure(name: str, cure: str) -> None:
    with pytest.raises(HookError, match=f"hook Mine: .*{cure}"):
        type("Mine", (ec.Hook,), {name: lambda self: None})


def test_an_attribute_in_the_place_of_a_method_is_refused() -> None:
    with pytest.raises(HookError, match=r"`state` is a method of every hook"):
        type("Mine", (ec.Hook,), {"state": {}})

    class Keeps(ec.Hook):
        def __init__(self) -> None:
            self.state: Any = {}

    with pytest.raises(HookError, match=r"hook .*Keeps.*its attribute `state`.*Give the attribute another name"):
        drive([Keeps()], steps=1)


def test_an_attribute_named_values_is_the_users() -> None:
    class Keeps(ec.Hook):
        def __init__(self) -> None:
            self.values: list[float] = []

        def after_step(self, run: Any, step: int, out: Any) -> None:
            self.values.append(float(out["loss"]))

    hook = Keeps()
    drive([hook], steps=3)
    assert len(hook.values) == 3


def test_a_place_that_does_not_exist_is_refused() -> None:
    with pytest.raises(HookError, match=r"`place` is 'last'; it must be one of 'early', 'normal', 'late'"):
        type("Mine", (ec.Hook,), {"place": "last"})
    hook: Any = ec.Hook()
    hook.place = "last"
    with pytest.raises(HookError, match=r"hook Hook .*`place` is 'last'; it must be one of 'early', 'normal', 'late'"):
        in_order([hook])


def test_an_object_that_lacks_a_method_is_refused() -> None:
    with pytest.raises(HookError, match=r"it has no method `begin`\. Derive it from ec\.Hook"):
        drive([object()], steps=1)  # type: ignore[list-item]


class Awaits(ec.Hook):
    async def after_step(self, run: Any, step: int, out: Any) -> None:  # type: ignore[override]
        run.request_stop("never")


class Yields(ec.Hook):
    def end(self, run: Any) -> Any:
        yield run


@pytest.mark.parametrize(
    ("hook", "words"), [(Awaits(), "Awaits.*`after_step` has `async`"), (Yields(), "Yields.*`end` has `yield`")]
)
def test_a_method_that_never_runs_is_refused(hook: ec.Hook, words: str) -> None:
    with pytest.raises(HookError, match=f"hook {words}, so calling it runs nothing"):
        drive([hook], steps=1)


def test_a_mock_of_a_listener_or_an_exporter_is_taken() -> None:
    """`inspect` reports each method of such a mock as async and as a generator."""
    listener = create_autospec(ec.CheckpointListener, instance=True)
    assert check_listeners([listener]) == (listener,)
    exporter = create_autospec(ec.export.Exporter, instance=True)
    exporter.name = "mocked"
    assert ec.EvalSpec(lambda: iter(()), exporters=[exporter]).exporters == (exporter,)
