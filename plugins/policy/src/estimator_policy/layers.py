"""Layers of settings, weakest first, and the effective value of each setting with its origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One source of settings.

    Attributes:
        origin: the name, such as "RunConfig" or "environment variable ESTIMATOR_PLUGINS".
        values: the values by name of the setting.
    """

    origin: str
    values: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """An effective value.

    Attributes:
        name: the name of the setting.
        value: the effective value.
        origin: the origin of its layer. Several origins, joined by " and ", if their values add up.
    """

    name: str
    value: Any
    origin: str


def resolve(layers: Sequence[Layer], *, adding: Sequence[str] = ()) -> tuple[Setting, ...]:
    """Returns the effective value of each setting, which is that of the last layer with it.

    Lists of `adding` are joined.

    Args:
        layers: the layers of settings, weakest first.
        adding: the names of settings that are tuples, and whose values in all layers are joined.

    Example:
        >>> default = Layer(origin="default", values={"strict": False, "block": ()})
        >>> code = Layer(origin="code", values={"block": ("a",)})
        >>> shell = Layer(origin="shell", values={"block": ("b",), "strict": True})
        >>> for setting in resolve([default, code, shell], adding=["block"]):
        ...     print(setting.name, setting.value, setting.origin)
        strict True shell
        block ('a', 'b') code and shell
    """
    found: dict[str, Setting] = {}
    for layer in layers:
        for name, value in layer.values.items():
            before, origin = found.get(name), layer.origin
            if name in adding and before is not None and before.value:
                if not value:
                    continue
                value, origin = (*before.value, *value), f"{before.origin} and {origin}"
            found[name] = Setting(name=name, value=value, origin=origin)
    return tuple(found.values())
