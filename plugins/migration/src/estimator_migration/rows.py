"""The table of names: the change of each name, and the home of its successor."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import resources
from typing import Any

from estimator_migration.canonical import canonical


class Verdict(StrEnum):
    """The kind of change that a name requires."""

    SAME = "the same"
    RENAMED = "renamed"
    PARTLY = "renamed in part"
    DIFFERS = "behaves differently"
    REWRITE = "rewrite by hand"
    GONE = "no successor"
    UNKNOWN = "unknown"


_SHORT = {
    "same": Verdict.SAME,
    "renamed": Verdict.RENAMED,
    "partly": Verdict.PARTLY,
    "differs": Verdict.DIFFERS,
    "rewrite": Verdict.REWRITE,
    "gone": Verdict.GONE,
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One name of TensorFlow.

    Args:
        name: the name, such as `tf.estimator.Estimator`. `tf.data.Dataset().map` is a member of an instance.
        verdict: the kind of change.
        home: the `module:name` of its successor, or "".
        how: the difference, or the code to write instead.
        arguments: the keyword arguments with another name in the successor. An empty name leaves the argument out, and
            `/` passes it by position.
        places: the positional arguments, in their order. An argument that ends in `=` has another position in the
            successor, so a rewritten call passes it by keyword.
        defaults: the arguments of the successor that TensorFlow has with another default, and that default.
        gives: the class of the result of a call, or "".
        module: whether the name is a module of other names. The row does not describe those names.
        takes: for a name with an exact successor in some calls: the arguments of those calls, and the kind that each
            must have.
        bare: the form in which the name itself has an exact successor: a `value`, a `function` that is passed on, or
            "".
        settled: for a name that behaves differently: the argument with which it behaves the same, `v1` if it does so
            under a name that only TensorFlow 1 has, or `matrix`.
        around: the `module:name` of a function around the call of the successor.
        uncalled: whether the successor is the result of a call, so that the call is removed.
    """

    name: str
    verdict: Verdict
    home: str = ""
    how: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    places: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict[str, str])
    gives: str = ""
    module: bool = False
    takes: Mapping[str, str] = field(default_factory=dict[str, str])
    bare: str = ""
    settled: str = ""
    around: str = ""
    uncalled: bool = False

    @property
    def of_forms(self) -> bool:
        """Whether the verdict of a use depends on its form."""
        return bool(self.takes or self.bare)

    @property
    def place(self) -> str:
        """The home as a program writes it: `ec.Estimator`, `jnp.sum`.

        Example:
            >>> Row(name="tf.reduce_sum", verdict=Verdict.RENAMED, home="jax.numpy:sum").place
            'jnp.sum'
        """
        module, _, name = self.home.partition(":")
        return ".".join(filter(None, (SHORT_MODULES.get(module, module), name)))


_ATTRIBUTES = ("errors", "export", "inputs", "learn_runner", "metrics", "summary")
#: The modules that programs import under a shorter name.
SHORT_MODULES = {
    "estimator_core": "ec",
    "jax.numpy": "jnp",
    **{f"estimator_core.{name}": f"ec.{name}" for name in _ATTRIBUTES},
}


@functools.cache
def table() -> Mapping[str, Row]:
    """Returns all rows, by name.

    Example:
        >>> table()["tf.estimator.Estimator"].place
        'ec.Estimator'
    """
    found: dict[str, Row] = {}
    folder = resources.files("estimator_migration") / "table"
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if file.name.endswith(".toml"):
            for row in _rows(tomllib.loads(file.read_text(encoding="utf-8"))):
                if row.name in found:
                    raise AssertionError(f"{file.name}: {row.name} has two rows")
                found[row.name] = row
    return found


def _rows(file: Mapping[str, Any]) -> list[Row]:
    """Returns the rows of a file: `[[rows]]` with the names they share, under the `module` of the file."""
    found: list[Row] = []
    for group in file["rows"]:
        module = group.get("module", file["module"])
        for name in group["names"].split():
            last = name.rpartition(".")[2]
            found.append(
                Row(
                    name=module if name == "." else f"{module}.{name}",
                    verdict=_SHORT[group["is"]],
                    home=group.get("home", "").replace("*", last),
                    how=group.get("how", ""),
                    arguments=group.get("arguments", {}),
                    places=tuple(group.get("places", "").split()),
                    defaults=group.get("defaults", {}),
                    gives=group.get("gives", "").replace("*", last),
                    module=name == "." or group.get("only_module", False),
                    takes=_kinds(group.get("takes", "")),
                    bare=group.get("bare", ""),
                    settled=group.get("settled", ""),
                    around=group.get("around", ""),
                    uncalled=group.get("uncalled", False),
                )
            )
    return found


def _kinds(text: str) -> dict[str, str]:
    """Returns `x:array name:name` as a mapping by argument."""
    pairs = (each.partition(":") for each in text.split())
    return {name: kind or "any" for name, _, kind in pairs}


@functools.cache
def _modules() -> frozenset[str]:
    names = (name.rpartition(".")[0] for name in table())
    return frozenset(part for name in names for part in _prefixes(name) if not part.endswith("()"))


def _prefixes(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[: count + 1]) for count in range(len(parts))]


def find(name: str) -> Row | None:
    """Returns the row of a name, or of its longest part with a row. None for a module that only holds others.

    Args:
        name: the dotted name, as it results from the imports of a program: `tensorflow.compat.v1.train.Saver`.

    Example:
        >>> find("tensorflow.compat.v1.train.Saver.save").name
        'tf.train.Saver'
        >>> find("tensorflow.train.Sever").verdict
        <Verdict.UNKNOWN: 'unknown'>
    """
    plain = canonical(name)
    for prefix in reversed(_prefixes(plain)):
        row = table().get(prefix)
        if row is not None and (prefix == plain or not row.module):
            return row
        if prefix == plain and plain in _modules():
            return None
    return Row(name=plain, verdict=Verdict.UNKNOWN, how="The table does not contain it. Look it up by hand.")
