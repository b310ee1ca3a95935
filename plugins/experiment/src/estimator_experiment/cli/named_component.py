"""Components that the command line names, with or without arguments: `best`, `best(keep=best)`."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

from estimator_core.errors import ArgumentError, EstimatorError
from estimator_core.plugins import default_plugins

#: The form in which Python shows a function that is a default value.
_FUNCTION = re.compile(r"<function (\S+) at 0x[0-9a-f]+>")


def made(kind: str, text: str, *arguments: Any) -> Any:
    """Makes a component of the command line.

    Args:
        kind: the kind of the component, which is also the option in messages.
        text: the name, optionally with arguments as in Python. A bare word is a string.
        arguments: the arguments before those of the text.

    Raises:
        PluginLookupError: no plugin has a component of that name.
        ArgumentError: the text has another form, or the component refuses the arguments or their values.

    Example:
        >>> made("hook", "stop_at_step(last_step=3)").next_step(0)
        3
    """
    name, named = parsed(text, f"--{kind}")
    make = default_plugins().get(kind, name)
    if needs := default_plugins().find(kind, name).component.needs:
        raise ArgumentError(
            f"--{kind} {text}: {name} needs {needs}, which only a program can supply. Create it in the program."
        )
    try:
        inspect.signature(make).bind(*arguments, **named)
    except TypeError as error:
        raise ArgumentError(
            f"--{kind} {text}: its arguments are missing or wrong ({error}). It takes {_taken(make, len(arguments))}. "
            f"Write {name}(a=1, b=word); add components with other arguments in the program."
        ) from error
    try:
        return make(*arguments, **named)
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"--{kind} {text}: {name} refuses it: {error}") from error
    except EstimatorError as error:
        from estimator_experiment.faults import fault

        fault(f"--{kind} {text}", error)  # in the message, because a command shows one line, without notes
        raise
    except Exception as error:
        error.add_note(f"while {default_plugins().explain(kind, name)} was made for --{kind} {text}")
        raise


def parsed(text: str, option: str) -> tuple[str, dict[str, Any]]:
    """Returns the name and the arguments in a text.

    Raises:
        ArgumentError: the text has another form.

    Example:
        >>> parsed("acme:best(metric=auc, keep=3)", "--exporter")
        ('acme:best', {'metric': 'auc', 'keep': 3})
    """
    name, bracket, rest = text.partition("(")
    if not bracket:
        return text, {}
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or not isinstance(call.func, ast.Name):
            raise ValueError("arguments have names")
        return name.strip(), {_named(keyword): _value(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError) as error:
        why = error.msg if isinstance(error, SyntaxError) else error
        raise ArgumentError(f"{option} {text}: it must have the form NAME or NAME(a=1, b=word) ({why}).") from error


def _taken(make: Any, given: int) -> str:
    """Returns the arguments of a component, without those that the command adds."""
    signature = inspect.signature(make)
    taken = list(signature.parameters.values())[given:]
    told = ", ".join(str(one) for one in taken) or "none"
    return _FUNCTION.sub(r"\1", told)


def _named(keyword: ast.keyword) -> str:
    if keyword.arg is None:
        raise ValueError("arguments have names")
    return keyword.arg


def _value(node: ast.expr) -> Any:
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)
