"""Decides whether one use of a name has an exact successor, for rows that depend on the form of the use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import libcst as cst

from estimator_migration.assigning import dotted_name
from estimator_migration.resolve import Resolver
from estimator_migration.rows import Row, Verdict
from estimator_migration.uses_of_values import OpenedValues
from estimator_migration.written import fits

_INITIALIZERS = "jax.nn.initializers"


def judged(resolver: Resolver, node: cst.CSTNode, row: Row, rest: str = "") -> Row:
    """Returns the row with the verdict of one use. A row that holds for all forms stays as it is.

    Args:
        resolver: the program.
        node: the use.
        row: the row of its name.
        rest: the part that the program takes of the name, such as `.max`.
    """
    if not row.of_forms:
        return row
    if rest or not _is_exact(resolver, node, row):
        return replace(row, verdict=Verdict.REWRITE)
    if row.verdict is Verdict.DIFFERS and not _is_settled(resolver, node, row):
        return row
    return replace(row, verdict=Verdict.RENAMED, how="")


def given(args: Sequence[cst.Arg], row: Row) -> Mapping[str, cst.BaseExpression] | None:
    """Returns the arguments of a call by their names in TensorFlow, or None if they are not known."""
    found: dict[str, cst.BaseExpression] = {}
    for place, argument in enumerate(args):
        if argument.star or (argument.keyword is None and place >= len(row.places)):
            return None
        word = row.places[place].rstrip("=") if argument.keyword is None else argument.keyword.value
        found[word] = argument.value
    return found


def _is_exact(resolver: Resolver, node: cst.CSTNode, row: Row) -> bool:
    if isinstance(node, cst.ImportAlias):
        return row.bare == "value"
    if not isinstance(node, cst.Name | cst.Attribute) or not dotted_name(node) or resolver.resolve(node) is None:
        return False
    parent = resolver.parents.get(node)
    if not isinstance(parent, cst.Call) or parent.func is not node:
        return _is_exact_alone(resolver, node, row)
    if isinstance(node, cst.Name) or not row.takes:
        return False
    arguments = given(parent.args, row)
    if arguments is None or not _keep_their_order(parent.args, row):
        return False
    fitting = all(name in row.takes and fits(row.takes[name], resolver, name, arguments) for name in arguments)
    return fitting and not (row.home.startswith(_INITIALIZERS) and OpenedValues(resolver).has(parent))


def _is_exact_alone(resolver: Resolver, node: cst.BaseExpression, row: Row) -> bool:
    """Returns whether a name that is not called has an exact successor: a dtype, or a function that is passed on."""
    parent = resolver.parents.get(node)
    if row.bare == "function":
        around = resolver.parents[parent] if isinstance(parent, cst.Arg) else None
        if isinstance(around, cst.Call):  # partial may add arguments
            return not resolver.module.code_for_node(around.func).endswith("partial")
        return isinstance(parent, cst.Param)
    # A dtype of JAX equals that of an array, but it is not the same object and has another hash.
    return row.bare == "value" and not OpenedValues(resolver).has(node)


def _keep_their_order(args: Sequence[cst.Arg], row: Row) -> bool:
    """Returns whether the keywords that the successor takes by position are already at these positions."""
    names = [place.rstrip("=") for place in row.places]
    for place, argument in enumerate(args):
        word = "" if argument.keyword is None else argument.keyword.value
        if row.arguments.get(word) == "/" and names.index(word) != place:
            return False
    return True


def _is_settled(resolver: Resolver, node: cst.CSTNode, row: Row) -> bool:
    """Returns whether the form of the use makes the difference irrelevant."""
    call = resolver.parents.get(node)
    if not row.settled or not isinstance(call, cst.Call) or call.func is not node:
        return False
    if row.settled != "matrix":
        words = row.settled.split()
        of_one = "v1" in words and isinstance(node, cst.Name | cst.Attribute) and _is_of_one(resolver, node)
        return of_one or not (given(call.args, row) or {}).keys().isdisjoint(words)
    around = resolver.parents.get(resolver.parents[call])
    shapes = [
        each.value
        for place, each in enumerate(around.args if isinstance(around, cst.Call) else ())
        if (place == 1 if each.keyword is None else each.keyword.value == "shape")
    ]
    return any(isinstance(each, cst.List | cst.Tuple) and len(each.elements) > 1 for each in shapes)


def _is_of_one(resolver: Resolver, node: cst.BaseExpression) -> bool:
    """Returns whether only TensorFlow 1 has the name as the program writes it."""
    resolved = resolver.resolve(node)
    return resolved is not None and any(f".{part}." in resolved.name for part in ("compat.v1", "contrib"))
