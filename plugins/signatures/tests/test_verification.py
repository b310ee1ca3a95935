"""An export of any format is read back and compared before it is published."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import estimator_core as ec
from estimator_core._plugins import Plugins
from estimator_core._plugins.records import Component
from estimator_core.errors import ExportError
from estimator_core.testing import tiny_input_fn, tiny_model_fn, tiny_receiver_fn

Change = Callable[[dict[str, Any]], Mapping[str, Any]]


class MemoryFormat:
    """A format that keeps its functions in memory. `change` changes the outputs of each loaded signature."""

    name = "memory"
    calls: list[str]
    change: Change
    lost: bool = False

    def __init__(self) -> None:
        self._request: Any = None

    def write(self, request: Any, directory: Path) -> None:
        self.calls.append("write")
        (directory / "export.memory").write_text(json.dumps(sorted(request.signatures)))
        self._request = request

    def load(self, directory: Path) -> Any:
        self.calls.append("load")
        request = self._request
        signatures: dict[str, Any] = {
            name: lambda spec=spec, **arrays: self.change(dict(spec.function(request.variables, arrays)))
            for name, spec in request.signatures.items()
        }
        return SimpleNamespace(signatures={} if self.lost else signatures, raw_signatures=signatures, manifest={})

    def recognizes(self, directory: Path) -> bool:
        return (directory / "export.memory").exists()


class Unreadable(MemoryFormat):
    def load(self, directory: Path) -> Any:
        raise RuntimeError("the reader is broken")


@pytest.fixture
def export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Exports a tiny model with a format class. Records the calls, the events and the exports directory."""
    seen = SimpleNamespace(calls=[], events=[], exports=tmp_path / "exports")

    def run(
        kind: type[MemoryFormat] = MemoryFormat,
        change: Change = lambda outputs: outputs,
        receiver_fn: Any = tiny_receiver_fn,
        model_fn: Any = tiny_model_fn,
        mode: str = ec.ModeKeys.PREDICT,
        check: type[Any] | None = None,
        **more: Any,
    ) -> str:
        module = ModuleType("a_format")
        module.Format = type("Format", (kind,), {"calls": seen.calls, "change": staticmethod(change), **more})  # type: ignore[attr-defined]
        module.Check = check  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "a_format", module)
        plugin = SimpleNamespace(
            ESTIMATOR_PLUGIN_API=(1, 0),
            estimator_components=lambda: [
                Component(kind="format", name="memory", target="a_format:Format", summary="In memory."),
                Component(kind="export_check", name="mine", target="a_format:Check", summary="A check."),
            ],
            estimator_export_written=lambda path, format_name: seen.events.append((path, format_name)),
        )
        plugins = Plugins(autoload=False, extra=[plugin], environ={}, strict=True)
        config = ec.RunConfig(
            model_dir=str(tmp_path / "model"),
            tf_random_seed=1,
            components={} if check is None else {"export_check": "mine"},
        )
        estimator = ec.Estimator(model_fn, config=config, plugins=plugins).train(tiny_input_fn(), steps=1)
        return estimator.export_saved_model(str(seen.exports), receiver_fn, experimental_mode=mode, format="memory")

    seen.run = run
    return seen


def test_a_sound_export_is_written_read_and_told_once(export: Any) -> None:
    path = export.run()
    assert (Path(path) / "export.memory").exists()
    assert export.calls == ["write", "load"]
    assert export.events == [(path, "memory")]


@pytest.mark.parametrize("answer", [False, True, "", 0.0])
def test_a_check_that_answers_without_words_is_named(export: Any, answer: Any) -> None:
    """The error once said that the output 'y' is "False", and blamed the export."""

    class Check:
        def difference(self, expected: np.ndarray, found: np.ndarray) -> Any:
            return answer

    with pytest.raises(ExportError, match=r"the export check .*Check returned .* from difference\(\); it must return"):
        export.run(check=Check)


def test_what_cannot_be_read_back_is_not_published(export: Any) -> None:
    with pytest.raises(ExportError, match=r"'memory' cannot read back .*RuntimeError: the reader is broken"):
        export.run(Unreadable)
    assert list(export.exports.iterdir()) == []
    assert export.events == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda outputs: {name: value + 1e-3 for name, value in outputs.items()},
            r"output 'y' at \[0\] is .* instead of",
        ),
        (lambda outputs: {name: value[:1] for name, value in outputs.items()}, "has shape .* instead of"),
        (lambda outputs: {}, r"output 'y' is missing; the export has \[\]"),
        (lambda outputs: outputs["no such"], "cannot be called: KeyError: 'no such'"),
    ],
    ids=["other values", "another shape", "an output less", "it raises"],
)
def test_other_outputs_are_not_published(export: Any, change: Change, message: str) -> None:
    with pytest.raises(ExportError, match=rf"does not reproduce the estimator: signature '\w+'.*{message}"):
        export.run(change=change)
    assert list(export.exports.iterdir()) == []
    assert export.events == []


class Refusing(MemoryFormat):
    def check(self, request: Any) -> None:
        self.calls.append("check")
        raise ExportError("signature 'serving_default' sorts, which this format does not")


def test_a_format_refuses_before_anything_is_written(export: Any) -> None:
    with pytest.raises(ExportError, match="'serving_default' sorts"):
        export.run(Refusing)
    assert export.calls == ["check"]
    assert not export.exports.exists()


def counting(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """A model whose metric is the share of predictions above their own value. It is 0."""
    spec = tiny_model_fn(features, labels, mode)
    if mode == ec.ModeKeys.PREDICT:
        return spec
    level = features["x"][:, 0] * 0
    predictions = {"level": level * 2}
    shares = {"above": ec.metrics.mean(predictions["level"] > level), "seen": ec.metrics.mean(labels)}
    return spec._replace(predictions=predictions, eval_metric_ops=shares)


@pytest.mark.parametrize("mode", [ec.ModeKeys.EVAL, ec.ModeKeys.TRAIN])
def test_metrics_of_what_an_export_gives_are_compared(export: Any, mode: str) -> None:
    """The difference is below the tolerance in every output, but it changes a metric from 0 to 1."""
    receiver_fn = ec.export.build_supervised_input_receiver_fn_from_input_fn(tiny_input_fn())
    export.run(receiver_fn=receiver_fn, model_fn=counting, mode=mode)

    def higher(outputs: dict[str, Any]) -> dict[str, Any]:
        return {**outputs, "predictions/level": outputs["predictions/level"] + np.float32(1e-6)}

    with pytest.raises(ExportError, match=rf"signature '{mode}', output 'metrics/above' at \[\] is 1.0 instead of 0.0"):
        export.run(receiver_fn=receiver_fn, model_fn=counting, mode=mode, change=higher)
    assert len(list(export.exports.iterdir())) == 1


def test_a_check_lowers_without_paths_too(export: Any) -> None:
    """A format may write what it lowers during a check."""
    limits: list[int] = []

    class Looking(MemoryFormat):
        def check(self, request: Any) -> None:
            limits.append(jax.config.jax_traceback_in_locations_limit)  # type: ignore[attr-defined]

    export.run(Looking)
    assert limits == [0]


class WithHostPart(MemoryFormat):
    """A format whose files contain the host part. `shown` changes the outputs that clients see."""

    shown: Change = staticmethod(lambda outputs: outputs)

    def load(self, directory: Path) -> Any:
        loaded = super().load(directory)
        request = self._request
        ((name, spec),) = request.signatures.items()

        def own(**arrays: Any) -> Mapping[str, Any]:
            (before,) = request.input_transforms
            self.calls.append("own")
            return self.shown(dict(spec.function(request.variables, before.apply(arrays))))

        loaded.own_signatures = {name: own}
        return loaded


def renamed() -> ec.export.ServingInputReceiver:
    ((name, feature),) = tiny_receiver_fn().features.items()
    return ec.export.ServingInputReceiver({name: feature}, {"by another name": feature})


def test_the_host_part_of_a_file_is_compared(export: Any) -> None:
    export.run(WithHostPart, receiver_fn=renamed)
    assert export.calls == ["write", "load", "own"]
    wrong = staticmethod(lambda outputs: {name: value + 1 for name, value in outputs.items()})
    with pytest.raises(ExportError, match="signature 'serving_default' with its host part, output 'y' at"):
        export.run(WithHostPart, receiver_fn=renamed, shown=wrong)


def test_a_feature_that_is_named_self_has_a_host_part(export: Any) -> None:
    def model_fn(features: Mapping[str, Any], labels: Any, mode: str) -> ec.EstimatorSpec:
        return tiny_model_fn({"x": features["self" if "self" in features else "x"]}, labels, mode)

    def receiver_fn() -> ec.export.ServingInputReceiver:
        ((name, feature),) = tiny_receiver_fn().features.items()
        return ec.export.ServingInputReceiver({"self": feature}, {name: feature})

    export.run(WithHostPart, receiver_fn=receiver_fn, model_fn=model_fn)
    assert export.calls == ["write", "load", "own"]


def test_a_lost_signature_is_not_published(export: Any) -> None:
    with pytest.raises(ExportError, match=r"signature 'serving_default' is missing; the export has \[\]"):
        export.run(lost=True)
    assert list(export.exports.iterdir()) == []


def test_exports_that_were_there_stay(export: Any) -> None:
    path = export.run()
    with pytest.raises(ExportError):
        export.run(Unreadable)
    assert [str(one) for one in export.exports.iterdir()] == [path]
