"""The check of values against the schema. Every fault has its place and the nearest valid name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from estimator_core.errors import did_you_mean
from estimator_runs.configuration.layers import KeyPath, Resolved, name_of
from estimator_runs.configuration.problems import ConfigurationError, Problem, at
from estimator_runs.configuration.schema import Configuration

#: The tables whose keys are full keys of the file.
_KEYS_IN_FULL: tuple[KeyPath, ...] = (("sweep", "space"), ("population", "values"))


def checked(resolved: Resolved) -> Configuration:
    """Returns the configuration that the values describe.

    Raises:
        ConfigurationError: a key is unknown or missing, keys exclude each other, or a value has another type.

    Example:
        >>> from estimator_runs.configuration.layers import Origin, Resolved
        >>> values = {"program": {"file": "line.py"}, "hparams": {"rate": 0.1}}
        >>> checked(Resolved(values=values, whole=Origin(source="x.toml"))).hparams
        {'rate': 0.1}
    """
    try:
        found = Configuration.model_validate(resolved.values)
    except ValidationError as error:
        raise ConfigurationError(_problems(error, resolved)) from None
    problems = [*_exclusive(found, resolved), *_incomplete(found, resolved)]
    if problems:
        raise ConfigurationError(problems)
    return found


def _problems(error: ValidationError, resolved: Resolved) -> list[Problem]:
    """Returns a problem for each place. If a value has several possible forms, their texts are joined."""
    texts: dict[KeyPath, list[str]] = {}
    for fault in error.errors(include_url=False):
        unknown = fault["type"] == "extra_forbidden"
        missing = fault["type"] == "missing"
        place = tuple(fault["loc"]) if unknown or missing else _existing(tuple(fault["loc"]), resolved.values)
        if unknown:
            hint = did_you_mean(place[-1], keys_at(place[:-1])) + _other_table(place)
            text = f"there is no such key.{_in_quotes(place[:-1]) or hint}"
        elif missing:
            text = "is missing."
        else:
            given = _value(resolved.values, place)
            text = fault["msg"].removeprefix("Input ").removeprefix("Value error, ")
            hint = (
                did_you_mean(
                    given, fault.get("ctx", {}).get("expected", "").replace("'", "").replace(" or ", ", ").split(", ")
                )
                if (fault["type"] == "literal_error")
                else ""
            )
            text = f"{text}, given {given!r}.{hint}" if "given" not in text else f"{text}."
            text += _in_quotes(place) if isinstance(given, Mapping) else ""
        told = texts.setdefault(place, [])
        if text not in told:
            told.append(text)
    return [at(resolved, place, " Or: ".join(told)) for place, told in texts.items()]


def _in_quotes(place: KeyPath) -> str:
    """Returns a hint if a full key was written without quotes, so that it became nested tables."""
    bare = len(place) == 3 and place[:2] in _KEYS_IN_FULL and "." not in str(place[2])
    return ' Write the key in full and in quotes, as in "hparams.rate".' if bare else ""


def _existing(place: KeyPath, values: Any) -> KeyPath:
    """Returns the part of a place that exists in the values. After it, pydantic names the form that it tried."""
    for length, part in enumerate(place):
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            return place[:length]
    return place


def _value(values: Any, place: KeyPath) -> Any:
    for part in place:
        values = values[part]
    return values


def keys_at(place: KeyPath) -> list[str]:
    """Returns the keys of a table in the schema; () is the file. Empty if the file chooses the keys."""
    model: Any = Configuration
    chosen = False  # whether the next part is a name that the file chooses
    for part in place:
        if chosen or not isinstance(part, str):
            chosen = False
            continue
        if part not in model.model_fields:
            return []
        annotation = model.model_fields[part].annotation
        model, chosen = _model_in(annotation), _has_names(annotation)
        if model is None:
            return []
    return [] if chosen else list(model.model_fields)


def _has_names(annotation: Any) -> bool:
    """Returns whether a type is a table whose keys the file chooses."""
    return get_origin(annotation) is dict or any(map(_has_names, get_args(annotation)))


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Returns the model of a table in a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def _other_table(place: KeyPath) -> str:
    """Returns a hint if the key belongs to another table."""
    homes = [name for name in Configuration.model_fields if place[-1] in keys_at((name,)) and (name,) != place[:-1]]
    return f" It belongs in [{homes[0]}]." if homes and place[-1] not in ("name", "args", "file", "function") else ""


def _exclusive(found: Configuration, resolved: Resolved) -> Iterable[Problem]:
    """Yields problems of keys that define the same thing twice, or nothing."""
    if found.program is None and found.model is None:
        yield Problem(
            origin=resolved.whole,
            key="",
            text="names no model. Write [model] with component or function, or [program] with file.",
        )
    if found.program is not None:
        for name in ("model", "inputs", "train", "evaluate", "plugins"):
            if name in resolved.values:
                why = "a program's own: use ESTIMATOR_PLUGINS" if name == "plugins" else "made by the [program]"
                yield at(resolved, (name,), f"cannot be combined with [program]: it is {why}. Remove one of them.")
    if found.model is not None:
        yield from _one_of(("model",), found.model, ("component", "function"), resolved)
        if found.model.function is not None and found.model.args:
            yield at(resolved, ("model", "args"), "a model_fn gets [hparams] as params. Move these there.")
    for name in ("train", "eval"):
        one = getattr(found.inputs, name, None)
        if one is not None:
            yield from _one_of(("inputs", name), one, ("component", "call", "function"), resolved)
            if one.function is not None and one.args:
                yield at(resolved, ("inputs", name, "args"), "an input_fn takes no args. Use call, not function.")
    if found.serving is not None and (found.serving.function is None) == (not found.serving.features):
        yield at(resolved, ("serving",), "write function, or features, and not both.")


def _incomplete(found: Configuration, resolved: Resolved) -> Iterable[Problem]:
    """Yields problems of keys that need others."""
    if found.model is not None and found.inputs is None:
        yield at(resolved, ("inputs",), "is missing: [model] needs [inputs.train].")
    if found.exporters and found.serving is None and found.program is None:
        yield at(resolved, ("exporters",), "need [serving], which says what requests look like.")


def _one_of(place: KeyPath, part: Any, names: tuple[str, ...], resolved: Resolved) -> Iterable[Problem]:
    said = [name for name in names if getattr(part, name) is not None]
    if len(said) != 1:
        words = " and ".join(said) if said else "none"
        where = (*place, said[-1]) if said else place
        yield at(resolved, where, f"write one of {', '.join(names)} in [{name_of(place)}], given: {words}.")
