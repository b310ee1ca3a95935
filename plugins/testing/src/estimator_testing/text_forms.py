"""Decides which arguments of a constructor a command line can write as text."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

#: The names in annotations of arguments that can be written as text.
_TEXT = re.compile(
    r"\b(str|int|float|bool|complex|bytes|list|tuple|dict|set|frozenset|None|NoneType|Path|PathLike|PurePath|"
    r"(Mutable)?(Sequence|Mapping|Set)|AbstractSet|Collection|Container|Iterable|Reversible|Sized|Hashable|"
    r"Any|Literal|object)\b"
)
#: The types that a literal can have.
_LITERALS = (str, int, float, bool, complex, bytes, list, tuple, dict, set)


def needs_a_program(target: Callable[..., Any], parameter: inspect.Parameter) -> bool:
    """Returns whether an argument is required, and its annotation has no literal.

    Args:
        target: the class or function with the argument. Names in its annotations are looked up where it is defined,
            including names that are imported only for type checkers.
        parameter: the argument.

    Example:
        >>> def make(path: str, build: Callable[[], object]) -> None: ...
        >>> [needs_a_program(make, one) for one in inspect.signature(make).parameters.values()]
        [False, True]
    """
    if parameter.default is not parameter.empty or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return False
    if parameter.annotation is parameter.empty:
        return False
    return not _has_a_literal(_resolved(parameter.annotation, _names_of(target)))


def _names_of(target: Callable[..., Any]) -> Mapping[str, Any]:
    """Returns the names of the module that defines the constructor, which a class may inherit."""
    function = inspect.unwrap(getattr(target, "__init__", target) if inspect.isclass(target) else target)
    return getattr(function, "__globals__", None) or vars(sys.modules[target.__module__])


def _resolved(annotation: object, names: Mapping[str, Any]) -> object:
    """Returns the meaning of an annotation as text, or the text itself if a name in it is not found."""
    if not isinstance(annotation, str):
        return annotation
    with contextlib.suppress(Exception):
        return eval(annotation, {**_only_for_checkers(annotation, names), **names})
    return annotation


def _only_for_checkers(annotation: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the names of an annotation that its module imports only for type checkers."""
    wanted = {one.id for one in ast.walk(ast.parse(annotation, mode="eval")) if isinstance(one, ast.Name)} - set(names)
    found: dict[str, Any] = {}
    if wanted:
        tree = ast.parse(inspect.getsource(sys.modules[names["__name__"]]))
        for statement in (one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom) and one.module):
            for alias in (one for one in statement.names if (one.asname or one.name) in wanted):
                module = importlib.import_module("." * statement.level + str(statement.module), names["__package__"])
                found[alias.asname or alias.name] = getattr(module, alias.name)
    return found


def _has_a_literal(annotation: object) -> bool:
    if isinstance(annotation, str):
        return not re.match(r"(\w+\.)*Callable\b", annotation) and _TEXT.search(annotation) is not None
    if (meant := getattr(annotation, "__supertype__", None) or getattr(annotation, "__value__", None)) is not None:
        return _has_a_literal(meant)  # NewType, and `type NAME = ...`
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return any(_has_a_literal(one) for one in arguments)
    if origin is typing.Annotated:
        return _has_a_literal(arguments[0])
    if isinstance(annotation, typing.TypeVar):
        return annotation.__bound__ is None or _has_a_literal(annotation.__bound__)
    named = annotation if origin is None else origin
    if _takes_a_literal(named):
        return True
    return _TEXT.fullmatch(str(getattr(named, "__name__", named)).rpartition(".")[2]) is not None


def _takes_a_literal(named: object) -> bool:
    """Returns whether literals can be instances of a class, such as an abstract collection, or a TypedDict."""
    if hasattr(named, "__required_keys__"):  # a TypedDict of `typing` or of `typing_extensions`
        return True
    with contextlib.suppress(TypeError):  # a protocol without checks of instances
        return inspect.isclass(named) and any(issubclass(one, named) for one in _LITERALS)
    return False
