"""Where a value comes from: layers of settings, weakest first, and what holds in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One source of settings.

    Attributes:
        origin: how it is called, "RunConfig" or "environment variable ESTIMATOR_PLUGINS".
        values: by name of the setting.
    """

    origin: str
    values: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A value that holds.

    Attributes:
        name: of the setting.
        value: what holds.
        origin: of the layer that says so; several, joined by " and ", where their values add up.
    """

    name: str
    value: Any
    origin: str


def resolve(layers: Sequence[Layer], *, adding: Sequence[str] = ()) -> tuple[Setting, ...]:
    """What holds of each setting: what the last layer that has it says; lists of `adding` are joined.

    Args:
        layers: weakest first.
        adding: names of settings, tuples, whose values of all layers hold together.

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
