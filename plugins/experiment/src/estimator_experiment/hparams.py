"""Named hyperparameters with fixed types."""

from __future__ import annotations

import ast
import json
import numbers
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from estimator_core.errors import ArgumentError, did_you_mean

#: name or name[index], followed by a value without comma or bracket, or by a bracketed list.
_ASSIGNMENT: Final = re.compile(
    r"""\s*(?P<name>[a-zA-Z]\w*)(?:\[\s*(?P<index>\d+)\s*\])?\s*=\s*
        (?:\[(?P<items>[^\]]*)\]\s*|(?P<value>[^,\[]*))
        (?:$|,\s*)""",
    re.VERBOSE,
)
_BOOLS: Final = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}


class HParams:
    """Hyperparameters as attributes. The first value of each fixes its type.

    Values are numbers, strings, booleans, None (which allows any type later) or non-empty lists of one type. An object
    of this class can be the `params` of an Estimator.

    Args:
        **values: names and initial values of the hyperparameters.

    Raises:
        ArgumentError: a name is reserved, a list is empty, or (later) a value has another type or a name is unknown.

    Example:
        >>> hparams = HParams(learning_rate=0.1, layers=[64, 32], dropout=False)
        >>> hparams.parse("learning_rate=1e-3,layers=[8,4],dropout=true").layers
        [8, 4]
        >>> hparams.parse("layers[1]=16").to_json()
        '{"learning_rate": 0.001, "layers": [8, 16], "dropout": true}'

    Source: `tf.contrib.training.HParams` (TensorFlow 1.x).
    """

    _values: dict[str, Any]
    _types: dict[str, tuple[type[Any], bool]]

    def __init__(self, **values: Any) -> None:
        object.__setattr__(self, "_values", {})
        object.__setattr__(self, "_types", {})
        for name, value in values.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds one hyperparameter. Its type is that of `value`, or of its items.

        Raises:
            ArgumentError: the name is taken, or `value` is an empty list.
        """
        if name in self._values or name.startswith("_") or hasattr(HParams, name):
            raise ArgumentError(f"Hyperparameter name is reserved: {name}")
        if isinstance(value, (list, tuple)):
            items: list[Any] = list(value)
            if not items:
                raise ArgumentError(f"Multi-valued hyperparameters cannot be empty: {name}")
            item_type: type[Any] = items[0].__class__
            self._types[name] = (item_type, True)
            self._values[name] = [_cast(name, item_type, item) for item in items]
        else:
            self._types[name] = (type(value), False)
            self._values[name] = value

    def set_hparam(self, name: str, value: Any) -> None:
        """Changes the value of an existing hyperparameter.

        Raises:
            ArgumentError: the name is unknown, the type differs, or only one of the old and new values is a list.
        """
        self._values[name] = self._checked(name, value)

    def del_hparam(self, name: str) -> None:
        """Removes a hyperparameter if it exists."""
        self._values.pop(name, None)
        self._types.pop(name, None)

    def get(self, key: str, default: Any = None) -> Any:
        """Returns the value of `key`, or `default` if it does not exist.

        Raises:
            ArgumentError: the hyperparameter exists and `default` has another type.
        """
        if key not in self._values:
            return default
        if default is not None:
            self._checked(key, default)
        return self._values[key]

    def values(self) -> dict[str, Any]:
        """Returns all values by name."""
        return {name: list(value) if self._types[name][1] else value for name, value in self._values.items()}

    def keys(self) -> Iterable[str]:
        """Returns all names. With it, `dict(hparams)` and `**hparams` are the values by name."""
        return self._values.keys()

    def get_type(self, name: str) -> tuple[type[Any], bool]:
        """Returns the type of a hyperparameter (for a list, of its items), and whether it is a list."""
        return self._type(name)

    def parse(self, values: str) -> HParams:
        """Overrides values from a text such as `"a=1,b=[2,3],c[0]=4"`. After an error, no value has changed.

        Booleans are `true`, `false`, `True`, `False`, `1` or `0`; items of a list are separated by commas or spaces.

        Returns:
            This object.

        Raises:
            ArgumentError: a name is unknown or occurs twice, a value has another type, or the text has an invalid form.
        """
        given: dict[str, Any] = {}
        for name, index, raw, origin in _assignments(values):
            item_type, is_list = self._type(name)
            if isinstance(raw, list):
                parsed: Any = [_parse(name, item_type, item, values) for item in raw]
            else:
                parsed = _parse(name, item_type, raw, values)
            if index is None:
                if name in given:
                    raise ArgumentError(f"Multiple assignments to variable '{name}' in {values}")
                given[name] = self._checked(name, parsed)
                continue
            if not is_list or isinstance(raw, list):
                raise ArgumentError(f"'{origin}': an index needs a list-valued hyperparameter and a single value.")
            items = given.setdefault(name, _Assigned(self._values[name]))
            if not isinstance(items, _Assigned) or index in items.indices:
                raise ArgumentError(f"Multiple assignments to variable '{name}[{index}]' in {values}")
            items.assign(name, index, parsed)
        return self.override_from_dict({name: list(v) if isinstance(v, _Assigned) else v for name, v in given.items()})

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Overrides several values and returns this object. After an error, no value has changed."""
        self._values.update({name: self._checked(name, value) for name, value in values_dict.items()})
        return self

    def parse_json(self, values_json: str) -> HParams:
        """Overrides values from a JSON object in the form of `to_json`. Returns this object."""
        try:
            decoded: Any = json.loads(values_json)
        except json.JSONDecodeError as error:
            raise ArgumentError(f"Hyperparameters: invalid JSON ({error}). Given: {values_json!r}") from error
        if not isinstance(decoded, dict):
            raise ArgumentError(f'Hyperparameters: expected a JSON object such as {{"a": 1}}. Given: {values_json!r}')
        return self.override_from_dict(decoded)

    def to_json(
        self, indent: int | str | None = None, separators: tuple[str, str] | None = None, sort_keys: bool = False
    ) -> str:
        """Returns the values as a JSON object without functions. The arguments are those of `json.dumps`."""
        plain = {name: value for name, value in self._values.items() if not callable(value)}
        return json.dumps(plain, indent=indent, separators=separators, sort_keys=sort_keys, default=_plain)

    def __getitem__(self, key: str) -> Any:
        """Returns a value as a dict of params does, so one model_fn works with both."""
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HParams) and self._values == other._values and self._types == other._types

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(
                f"HParams has no hyperparameter {name!r}.{self._hint(name)} "
                f"It has: {sorted(self.__dict__.get('_values', {}))}."
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self.set_hparam(name, value)

    def __delattr__(self, name: str) -> None:
        self.del_hparam(name)

    def __getstate__(self) -> dict[str, Any]:
        return {"_values": self._values, "_types": self._types}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        return f"HParams({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"

    def _type(self, name: str) -> tuple[type[Any], bool]:
        if name not in self._types:
            raise ArgumentError(
                f"Unknown hyperparameter type for {name}.{self._hint(name)} "
                f"Known: {sorted(self._types)}. Use add_hparam for a new one."
            )
        return self._types[name]

    def _hint(self, name: str) -> str:
        known: dict[str, Any] = self.__dict__.get("_values", {})
        return did_you_mean(name, known)

    def _checked(self, name: str, value: Any) -> Any:
        item_type, is_list = self._type(name)
        if not isinstance(value, (list, tuple)):
            if is_list:
                raise ArgumentError(f"Must pass a list for multi-valued parameter: {name}. Given: {value!r}")
            return _cast(name, item_type, value)
        if not is_list and item_type is not type(None):
            raise ArgumentError(f"Must not pass a list for single-valued parameter: {name}. Given: {value!r}")
        items: list[Any] = list(value)
        if not items:
            raise ArgumentError(f"Multi-valued hyperparameters cannot be empty: {name}")
        return [_cast(name, item_type, item) for item in items]


class _Assigned(list[Any]):
    """A copy of a list whose items are being assigned one by one."""

    def __init__(self, items: Iterable[Any]) -> None:
        super().__init__(items)
        self.indices: set[int] = set()

    def assign(self, name: str, index: int, value: Any) -> None:
        if index >= len(self):
            raise ArgumentError(
                f"{name}[{index}] is out of range: {name} has {len(self)} items. "
                "Give the whole list to change its length."
            )
        self.indices.add(index)
        self[index] = value


def _assignments(values: str) -> Iterable[tuple[str, int | None, str | list[str], str]]:
    """Yields name, index, text of the value (a list of texts for a bracketed one), and the whole assignment."""
    position = 0
    while position < len(values):
        match = _ASSIGNMENT.match(values, position)
        if match is None:
            raise ArgumentError(
                f"Malformed hyperparameter value: {values[position:]!r}. Write name=value or name=[value,value]."
            )
        position = match.end()
        index = None if match["index"] is None else int(match["index"])
        raw: str | list[str] = match["value"]
        if match["items"] is not None:
            raw = [item for item in re.split(r"[ ,]+", match["items"]) if item]
        yield match["name"], index, raw, match[0].strip(" ,")


def _parse(name: str, item_type: type[Any], text: str, values: str) -> Any:
    try:
        if item_type is type(None):
            return _literal(text)
        if issubclass(item_type, bool):
            return _BOOLS[text]
        return item_type(text)
    except (KeyError, ValueError, TypeError):
        raise ArgumentError(
            f"Could not parse hparam '{name}' of type '{item_type.__name__}' with value '{text}' in {values}"
        ) from None


def _literal(text: str) -> Any:
    try:
        return _BOOLS[text] if text in ("true", "false") else ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):  # what literal_eval may raise
        return text


def _cast(name: str, item_type: type[Any], value: Any) -> Any:
    """Returns `value` as `item_type` if the conversion loses nothing."""
    if item_type is type(None) or type(value) is item_type:
        return value
    is_text = issubclass(item_type, (str, bytes)) != isinstance(value, (str, bytes))
    is_bool = issubclass(item_type, bool) != isinstance(value, bool)
    is_fraction = issubclass(item_type, numbers.Integral) and not isinstance(value, numbers.Integral)
    is_no_number = issubclass(item_type, numbers.Number) and not isinstance(value, numbers.Number)
    try:
        if is_text or is_bool or is_fraction or is_no_number:
            raise TypeError
        converter: Any = item_type
        return converter(value)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"Could not cast hyperparameter '{name}' of type '{item_type.__name__}' from value {value!r}"
        ) from None


def _plain(value: Any) -> Any:
    """Returns a numpy scalar or array as a JSON value."""
    return value.tolist() if hasattr(value, "tolist") else repr(value)
