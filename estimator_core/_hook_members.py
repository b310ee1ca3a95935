"""The members that a hook may define, and members of users whose calls would run nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from estimator_core._wrong_arguments import suggestion
from estimator_core.errors import HookError

METHODS = (
    "begin",
    "after_create",
    "before_step",
    "after_step",
    "on_values",
    "before_last_save",
    "end",
    "next_step",
    "state",
    "restore",
)
PLACES = ("early", "normal", "late")
_MISSING = object()
#: Members of every protocol, which are not part of a contract.
_OF_ALL = frozenset(dir(Protocol))
#: Words for a result that the callers of a method await or iterate.
_CONSUMED = ("Itera", "Generator", "Awaitable", "Coroutine")
RESERVED = ("before_", "after_", "on_")
#: Members of earlier versions, with their replacements.
_EARLIER = {
    "slack": "`slack` is now Wake(within=...) returned by next_step",
    "next_time": "`next_time` is now Wake(time=...) returned by next_step",
    "comes_along": "`comes_along` is now Wake(joins=True) returned by next_step",
    "values": "`values` is now run.follow(name), called in begin",
    "settle": '`settle` was removed; a hook with `place = "late"` is called after the others',
}


def check_members(kind: type[Any]) -> None:
    """Refuses a hook class that defines a reserved name that is not a member.

    Raises:
        HookError: there is such a name. The message names the class, the name and the remedy.
    """
    where = f"hook {kind.__qualname__}"
    for name, value in vars(kind).items():
        if name in _EARLIER:
            raise HookError(f"{where}: {_EARLIER[name]}. Rename it, or use that.")
        if name in METHODS and not _is_method(value):
            raise HookError(
                f"{where}: `{name}` is a method of every hook and cannot be {value!r}. Give the attribute another name."
            )
        if name.startswith(RESERVED) and name not in METHODS:
            hint = suggestion(name, METHODS, f"the methods of a hook are {', '.join(METHODS)}.")
            raise HookError(
                f"{where}: `{name}`: {hint} Names that begin with {', '.join(RESERVED)} are reserved for members of "
                "Hook; give a method of your own another name."
            )
    place_of(kind, lambda _: where)


def place_of(hook: object, describe: Callable[[Any], str]) -> int:
    """Returns the number of the `place` of a hook or of a hook class.

    Args:
        hook: the hook, or the class.
        describe: a function that names the hook in messages.

    Raises:
        HookError: there is no such place.
    """
    place = getattr(hook, "place", "normal")
    if place not in PLACES:
        places = ", ".join(map(repr, PLACES))
        raise HookError(f"{describe(hook)}: `place` is {place!r}; it must be one of {places}.")
    return PLACES.index(place)


def refuse_shadowed(hook: object, contract: type[Any], describe: Callable[[Any], str]) -> None:
    """Refuses a hook with an attribute that hides a method, or with a method that would never run or that takes other
    arguments, before it is called.

    Args:
        hook: the hook.
        contract: the class `Hook`.
        describe: a function that names the hook in messages.

    Raises:
        HookError: there is such a member. The message names the hook, the member and the remedy.
    """
    for name in METHODS:
        value = getattr(hook, name, _MISSING)
        if value is _MISSING:
            raise HookError(f"{describe(hook)}: it has no method `{name}`. Derive it from ec.Hook.")
        if not callable(value):
            raise HookError(
                f"{describe(hook)}: its attribute `{name}` ({value!r}) hides the method `{name}` of every hook. "
                f"Give the attribute another name, `_{name}` for example."
            )
    refuse_deferred(hook, METHODS, describe(hook), HookError)
    for name in METHODS:
        _refuse_arguments(name, getattr(hook, name), getattr(contract, name), describe(hook), HookError)


def refuse_deferred(owner: object, names: Iterable[str], where: str, error: type[Exception]) -> None:
    """Refuses an object with a member that would never run, because the result of its call is not awaited or iterated.

    Args:
        owner: the object with the members.
        names: the names of the members.
        where: the first words of the message.
        error: the class of the error.

    Example:
        >>> refuse_deferred(dict, ["get"], "the table", TypeError)
    """
    for name in names:
        member = getattr(owner, name)
        waits = inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member)
        if waits != inspect.isgeneratorfunction(member):  # a mock of a method claims to be both
            how = "async" if waits else "yield"
            raise error(f"{where}: `{name}` has `{how}`, so calling it runs nothing. Remove `{how}`.")


def refuse_misfit(owner: object, contract: type[Any], where: str, error: type[Exception]) -> None:
    """Refuses an object that lacks a member of a contract, or with a method that cannot be called as the contract calls
    it, or that would never run.

    Args:
        owner: the object with the members.
        contract: the class or protocol with the public members. Members that `owner` inherits from it are not examined.
        where: the first words of the message.
        error: the class of the error.

    Example:
        >>> refuse_misfit([], Iterable, "the table", TypeError)
    """
    annotated = (name for base in contract.__mro__ for name in inspect.get_annotations(base))
    for name in dict.fromkeys([*dir(contract), *annotated]):
        form = inspect.getattr_static(contract, name, None)
        bound, form = not isinstance(form, staticmethod), getattr(form, "__func__", form)
        if name.startswith("_") and not (name not in _OF_ALL and name.endswith("__") and inspect.isfunction(form)):
            continue
        if not hasattr(type(owner), name) and not hasattr(owner, name):  # the first does not compute a property
            raise error(f"{where}: it has no `{name}`, which {contract.__name__} requires. Add it.")
        if not inspect.isfunction(form):
            continue
        member = owner if name == "__call__" else getattr(owner, name)
        if not callable(member):
            raise error(f"{where}: `{name}` is {member!r}, but {contract.__name__} requires a method. Make it one.")
        returns = str(form.__annotations__.get("return", "Iterator"))  # may be anything if the contract does not say it
        if not inspect.iscoroutinefunction(form) and not any(one in returns for one in _CONSUMED):
            refuse_deferred(owner, (name,), where, error)
        _refuse_arguments(name, member, form, where, error, bound=bound)


def _refuse_arguments(
    name: str,
    member: Callable[..., Any],
    form: Callable[..., Any],
    where: str,
    error: type[Exception],
    *,
    bound: bool = True,
) -> None:
    if getattr(member, "__func__", None) is form:  # inherited
        return
    try:
        takes = inspect.signature(member, follow_wrapped=False)  # a decorator may pass arguments of its own
    except (TypeError, ValueError):  # a function in C without a signature
        return
    passed = list(inspect.signature(form).parameters.values())[bound:]
    by_name = [one.name for one in passed if one.kind is one.KEYWORD_ONLY]
    by_place = [one.name for one in passed if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    try:
        takes.bind(*by_place, **dict.fromkeys(by_name))
    except TypeError as fault:
        call = ", ".join([*by_place, *(f"{one}=" for one in by_name)])
        raise error(
            f"{where}: `{name}{takes}` is called as `{name}({call})`: {fault}. Give it these arguments."
        ) from None


def _is_method(value: object) -> bool:
    return callable(value) or isinstance(value, (staticmethod, classmethod, property))
