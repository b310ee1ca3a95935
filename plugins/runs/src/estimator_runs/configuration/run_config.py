"""The RunConfig of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_core.config import FullySharded, KeepBest, RunConfig
from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_runs.configuration.layers import Resolved
from estimator_runs.configuration.problems import ConfigurationError, at
from estimator_runs.configuration.schema import NONE, Configuration
from estimator_runs.configuration.targets import with_here


def run_config_fields(found: Configuration, resolved: Resolved) -> dict[str, Any]:
    """Returns the fields of RunConfig that the configuration sets, as Python values.

    Raises:
        ConfigurationError: RunConfig refuses a value.
    """
    said: Mapping[str, Any] = resolved.values.get("run_config", {})
    fields = {name: getattr(found.run_config, name) for name in said}
    texts = {name: value for name, value in fields.items() if isinstance(value, str)}
    fields |= {name: with_here(resolved, ("run_config", name), text) for name, text in texts.items()}
    if fields.get("keep_checkpoint_best") is not None:
        fields["keep_checkpoint_best"] = KeepBest(**fields["keep_checkpoint_best"].model_dump())
    if "partition_rules" in fields:
        fields["partition_rules"] = [tuple(map(_spec, rule)) for rule in fields["partition_rules"]]
    try:
        RunConfig(**fields)
    except (ArgumentError, ArgumentTypeError) as error:
        named = [name for name in fields if name in str(error)]
        path = ("run_config", *named[-1:])
        raise ConfigurationError([at(resolved, path, str(error))]) from None
    return fields


def _spec(value: Any) -> Any:
    """Converts a partition spec: lists become tuples, and a table becomes FullySharded."""
    if isinstance(value, list):
        return tuple(map(_spec, value))
    if isinstance(value, Mapping):
        return FullySharded(**{key: _spec(each) for key, each in value.items()})
    return None if value == NONE else value
