"""Hyperparameters for TensorBoard's HPARAMS page."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

from estimator_core.hooks import Hook, Run
from estimator_core.summaries import without_secrets

_VERSION = 0
_PREFIX = "_hparams_/"


class HParamsHook(Hook):
    """Writes the hyperparameters of a run, so that the HPARAMS page of TensorBoard can compare the runs in a folder.

    Args:
        hparams: numbers, booleans and texts by name. None: the values in `params` of the Estimator.
        metrics: tags of scalars to show with them, prefixed by their directory in model_dir, such as "eval/accuracy".
            "loss" is the training loss.

    Example:
        >>> HParamsHook({"learning_rate": 0.1, "layers": [8, 8]}).hparams
        {'learning_rate': 0.1, 'layers': '[8, 8]'}
    """

    def __init__(
        self, hparams: Mapping[str, Any] | None = None, metrics: Sequence[str] = ("loss", "eval/loss", "eval/accuracy")
    ) -> None:
        self._given = hparams is not None
        self.hparams = plain_hparams(hparams)
        self.metrics = tuple(metrics)

    def begin(self, run: Run) -> None:
        """Reads the params of the Estimator if no hyperparameters were passed."""
        if not self._given:
            self.hparams = plain_hparams(run.params)

    def after_create(self, run: Run) -> None:
        """Writes the hyperparameters."""
        if not self.hparams:
            return
        api_pb2: Any = import_module("tensorboardX.proto.api_pb2")
        plugin_hparams_pb2: Any = import_module("tensorboardX.proto.plugin_hparams_pb2")

        kinds = {bool: "DATA_TYPE_BOOL", str: "DATA_TYPE_STRING"}
        infos = [
            api_pb2.HParamInfo(name=name, type=api_pb2.DataType.Value(kinds.get(type(value), "DATA_TYPE_FLOAT64")))
            for name, value in self.hparams.items()
        ]
        names = [(group, tag) for group, _, tag in (metric.rpartition("/") for metric in self.metrics)]
        metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(group=group, tag=tag)) for group, tag in names]
        experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics)
        start = plugin_hparams_pb2.SessionStartInfo(start_time_secs=time.time())
        for name, value in self.hparams.items():
            place = start.hparams[name]
            if isinstance(value, bool):
                place.bool_value = value
            elif isinstance(value, str):
                place.string_value = value
            else:
                place.number_value = value
        data = plugin_hparams_pb2.HParamsPluginData
        _write(run, "experiment", data(experiment=experiment, version=_VERSION))
        _write(run, "session_start_info", data(session_start_info=start, version=_VERSION))

    def end(self, run: Run) -> None:
        """Records how the run ended."""
        if not self.hparams:
            return
        api_pb2: Any = import_module("tensorboardX.proto.api_pb2")
        plugin_hparams_pb2: Any = import_module("tensorboardX.proto.plugin_hparams_pb2")

        status = api_pb2.Status.Value("STATUS_FAILURE" if run.failed else "STATUS_SUCCESS")
        info = plugin_hparams_pb2.SessionEndInfo(status=status, end_time_secs=time.time())
        content = plugin_hparams_pb2.HParamsPluginData(session_end_info=info, version=_VERSION)
        _write(run, "session_end_info", content)


def plain_hparams(given: Any) -> dict[str, Any]:
    """Converts hyperparameters to types that TensorBoard supports: numbers, booleans and texts. Sequences become text.

    Args:
        given: a mapping, a dataclass, or an object like `HParams` whose `values()` returns a mapping. Any other object
            counts as empty. Values of other types are skipped, and secrets are masked as in the run record.

    Example:
        >>> plain_hparams({"rate": 0.1, "units": (8, 4), "decay": None, "function": print})
        {'rate': 0.1, 'units': '(8, 4)'}
        >>> plain_hparams(None)
        {}
    """
    if is_dataclass(given) and not isinstance(given, type):
        given = {one.name: getattr(given, one.name) for one in fields(given)}
    values = getattr(given, "values", None)
    if not isinstance(given, Mapping):
        given = values() if callable(values) else {}
    if not isinstance(given, Mapping):
        return {}
    return {
        str(name): _shown(str(name), value if _is_plain(value) else str(value))
        for name, value in given.items()
        if _is_plain(value) or (isinstance(value, list | tuple) and all(map(_is_plain, value)))
    }


def _shown(name: str, value: Any) -> Any:
    """Returns the value, or its mask if the run record masks it."""
    masked = without_secrets([f"--{name}={value}"])[0].partition("=")[2]
    return value if masked == str(value) else masked


def _is_plain(value: object) -> bool:
    return isinstance(value, bool | int | float | str)


def _write(run: Run, tag: str, content: Any) -> None:
    from tensorboardX.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue] # made by protobuf
    from tensorboardX.proto.summary_pb2 import Summary, SummaryMetadata  # pyright: ignore[reportAttributeAccessIssue] # made by protobuf

    data = SummaryMetadata.PluginData(plugin_name="hparams", content=content.SerializeToString())
    value = Summary.Value(tag=_PREFIX + tag, metadata=SummaryMetadata(plugin_data=data))
    run.summaries.event(Event(summary=Summary(value=[value])), run.step)
