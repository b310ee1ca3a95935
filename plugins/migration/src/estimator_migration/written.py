"""Tests of arguments, as they are written, that decide whether a call has an exact successor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import libcst as cst
from libcst import matchers

from estimator_migration.canonical import canonical
from estimator_migration.resolve import Resolver, is_ours, text_of

_WIDE = frozenset({"float32", "float16", "half", "bfloat16", "int32", "bool", "bool_"})
#: The dtypes of TensorFlow that JAX also has with its default settings.
DTYPES = _WIDE | {"int8", "int16", "uint8", "uint16", "uint32", "complex64"}
_INT32 = 2**31
#: The attributes that only shapes of TensorFlow have, not those of arrays.
_OF_SHAPES = frozenset({"get_shape", "as_list", "num_elements", "dense_shape", "value"})
_DISPLAYS = (cst.List, cst.Tuple, cst.Set, cst.Dict, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
_STRINGS = (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString)
#: A test of an expression. The last parameter holds all arguments of the call, by name.
_Test = Callable[[Resolver, cst.BaseExpression, Mapping[str, cst.BaseExpression]], bool]


def fits(kind: str, resolver: Resolver, name: str, given: Mapping[str, cst.BaseExpression]) -> bool:
    """Returns whether an argument of a call is of a kind.

    Args:
        kind: a key of the tests below, or a literal such as `1.0`.
        resolver: the program.
        name: the name of the argument.
        given: all arguments of the call.
    """
    test = _TESTS.get(kind)
    if test is not None:
        return test(resolver, given[name], given)
    value = _literal(given[name])
    return value is not None and repr(value) == kind


def dtype_of(resolver: Resolver, node: cst.BaseExpression) -> str:
    """Returns the name of a dtype, as in `tf.float32`, `np.float32`, `"float32"`. "?": ambiguous, "": not known."""
    text = text_of(node)
    if text is not None:
        return text
    resolved = resolver.resolve(node) if isinstance(node, cst.Name | cst.Attribute) else None
    if resolved is not None and is_ours(resolved.name):
        if resolved.alias and not (isinstance(node, cst.Name) and resolver.means_one(node)):
            return "?"
        module, _, name = canonical(resolved.name).rpartition(".")
        return name if module in ("tf", "tf.dtypes") else ""
    if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name):
        return node.attr.value if node.value.value in ("np", "numpy", "jnp") else ""
    return ""


def _is_dtype(resolver: Resolver, node: cst.BaseExpression, given: Mapping[str, cst.BaseExpression]) -> bool:
    """Accepts a dtype that JAX has, or that of another array."""
    del given
    known = dtype_of(resolver, node)
    if known or not isinstance(node, cst.Attribute):
        return known in DTYPES
    return node.attr.value == "dtype" and getattr(node.value, "value", "") not in ("self", "cls")


def _is_data(resolver: Resolver, node: cst.BaseExpression, given: Mapping[str, cst.BaseExpression]) -> bool:
    """Accepts data for `jnp.asarray`, but no text."""
    del given
    return not any(isinstance(each, _STRINGS) for each in _values(resolver.written(node)))


def _is_castable(resolver: Resolver, node: cst.BaseExpression, given: Mapping[str, cst.BaseExpression]) -> bool:
    """Accepts data that `jnp.asarray` casts. It raises an error for a number outside of the range of a narrow dtype."""
    value = resolver.written(node)
    plain = isinstance(value, _DISPLAYS) or _literal(value) is not None
    return _is_data(resolver, node, given) and (not plain or dtype_of(resolver, given["dtype"]) in _WIDE)


def _is_array(resolver: Resolver, node: cst.BaseExpression, given: Mapping[str, cst.BaseExpression]) -> bool:
    """Accepts arguments of a function of jnp: neither text nor a list."""
    del given
    return not isinstance(resolver.written(node), (*_DISPLAYS, *_STRINGS))


def _is_arrays(resolver: Resolver, node: cst.BaseExpression, given: Mapping[str, cst.BaseExpression]) -> bool:
    """Accepts a list of arrays that is written as a list. For a single array, jnp would join the rows."""
    value = resolver.written(node)
    if isinstance(value, cst.ListComp):
        return _is_array(resolver, value.elt, given)
    if not isinstance(value, cst.List | cst.Tuple):
        return False
    whole = bool(value.elements) or value is not node  # it may be filled later
    return whole and all(
        isinstance(each, cst.Element) and _is_array(resolver, each.value, given) for each in value.elements
    )


def _is_static(resolver: Resolver, node: cst.BaseExpression, given: Mapping[str, cst.BaseExpression]) -> bool:
    """Accepts a number that Python knows, as far as the program shows: it contains no name of TensorFlow."""
    del given
    value = resolver.written(node)
    names = matchers.findall(value, matchers.Name() | matchers.Attribute())
    parts = [each for each in names if isinstance(each, cst.Name | cst.Attribute)]
    found = [resolver.resolve(each) for each in parts]
    return not (
        isinstance(value, (*_DISPLAYS, *_STRINGS))
        or any(each is not None and is_ours(each.name) for each in found)
        or any(isinstance(each, cst.Attribute) and each.attr.value in _OF_SHAPES for each in parts)
    )


def _is_shape(resolver: Resolver, node: cst.BaseExpression, given: Mapping[str, cst.BaseExpression]) -> bool:
    """Accepts a number, a list of numbers, or the shape of another array."""
    value = resolver.written(node)
    if isinstance(value, cst.Attribute):
        return value.attr.value == "shape" and _is_static(resolver, value, given)
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        sides = (resolver.written(value.left), resolver.written(value.right))
        return all(isinstance(side, cst.List | cst.Tuple) and _is_shape(resolver, side, given) for side in sides)
    if isinstance(value, cst.List | cst.Tuple):
        return all(isinstance(each, cst.Element) and _is_static(resolver, each.value, given) for each in value.elements)
    return isinstance(_literal(value), int)


def _is_axis(resolver: Resolver, node: cst.BaseExpression, given: Mapping[str, cst.BaseExpression]) -> bool:
    del given
    value = _literal(resolver.written(node))
    return isinstance(value, int) and not isinstance(value, bool)


def _are_axes(resolver: Resolver, node: cst.BaseExpression, given: Mapping[str, cst.BaseExpression]) -> bool:
    """Accepts an axis, or a list of axes. An empty list means all axes in TensorFlow, and none in JAX."""
    value = resolver.written(node)
    if not isinstance(value, cst.List | cst.Tuple):
        return _is_axis(resolver, value, given)
    return bool(value.elements) and all(_is_axis(resolver, each.value, given) for each in value.elements)


def _is_number(resolver: Resolver, node: cst.BaseExpression, given: Mapping[str, cst.BaseExpression]) -> bool:
    del given
    value = _literal(resolver.written(node))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_constant(resolver: Resolver, node: cst.BaseExpression, given: Mapping[str, cst.BaseExpression]) -> bool:
    """Accepts data with a dtype, or literals whose dtype is the same in JAX."""
    if "dtype" in given:
        return _is_castable(resolver, node, given)
    kinds = {_kind(each) for each in _values(node)}
    return kinds <= {"int", "float"} or kinds == {"bool"}


def _is_name(resolver: Resolver, node: cst.BaseExpression, given: Mapping[str, cst.BaseExpression]) -> bool:
    """Accepts a name. By position it must be a text, None or a variable, as TensorFlow 2 may have another argument
    there.
    """
    del given
    argument = resolver.parents.get(node)
    if isinstance(argument, cst.Arg) and argument.keyword is not None:
        return True
    value = resolver.written(node)
    resolved = resolver.resolve(value)
    if resolved is not None and is_ours(resolved.name):
        return False
    if isinstance(value, cst.BinaryOperation):
        return isinstance(value.left, _STRINGS) or isinstance(value.right, _STRINGS)
    return isinstance(value, (*_STRINGS, cst.Name, cst.Attribute)) and _literal(value) is None


def _is_level(resolver: Resolver, node: cst.BaseExpression, given: Mapping[str, cst.BaseExpression]) -> bool:
    """Accepts any level, in a program that does not set up the handlers of loggers."""
    del node, given
    names = matchers.findall(resolver.module, matchers.Name())
    return not any(isinstance(each, cst.Name) and each.value in _HANDLING for each in names)


_HANDLING = frozenset({"basicConfig", "addHandler", "removeHandler", "handlers", "dictConfig", "fileConfig"})

_TESTS: Mapping[str, _Test] = {
    "any": lambda resolver, node, given: True,
    "name": _is_name,
    "data": _is_data,
    "castable": _is_castable,
    "array": _is_array,
    "arrays": _is_arrays,
    "static": _is_static,
    "shape": _is_shape,
    "axis": _is_axis,
    "axes": _are_axes,
    "number": _is_number,
    "zero": lambda resolver, node, given: _literal(node) == 0,
    "constant": _is_constant,
    "dtype": _is_dtype,
    "float32": lambda resolver, node, given: dtype_of(resolver, node) == "float32",
    "int32": lambda resolver, node, given: dtype_of(resolver, node) == "int32",
    "level": _is_level,
}


def _values(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yields the elements of nested lists, or the expression itself."""
    if isinstance(node, cst.List | cst.Tuple):
        for element in node.elements:
            yield from _values(element.value)
    else:
        yield node


def _kind(node: cst.BaseExpression) -> str:
    """Returns `int`, `float` or `bool` for a literal with the same dtype in TensorFlow and JAX, and "" otherwise."""
    value = _literal(node)
    if isinstance(value, int) and not -_INT32 <= value < _INT32:
        return ""
    return "" if value is None else type(value).__name__


def _literal(node: cst.BaseExpression) -> bool | int | float | None:
    """Returns the value of a literal number or truth value, or None."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        value = _literal(node.expression)
        return None if value is None or isinstance(value, bool) else -value
    if isinstance(node, cst.Integer | cst.Float):
        value = node.evaluated_value
        return value if isinstance(value, int | float) else None
    return {"True": True, "False": False}.get(node.value) if isinstance(node, cst.Name) else None
