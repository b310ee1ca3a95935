"""Functions whose call runs nothing of them: `async` ones, and those with a `yield`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable


def refuse_deferred(owner: object, names: Iterable[str], where: str, error: type[Exception]) -> None:
    """Refuses an object with a member that would never run, as nobody awaits or iterates what its call returns.

    Args:
        owner: has the members.
        names: of the members.
        where: the first words of the message.
        error: the kind of error.

    Example:
        >>> refuse_deferred(dict, ["get"], "the table", TypeError)
    """
    for name in names:
        member, how = getattr(owner, name), ""
        if inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member):
            how = "async"
        elif inspect.isgeneratorfunction(member):
            how = "yield"
        if how:
            raise error(f"{where}: `{name}` has `{how}`, so its call runs nothing of it. Take `{how}` out.")
