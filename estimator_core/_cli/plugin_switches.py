"""The switches of `estimator` that say which plugins may load."""

from __future__ import annotations

import argparse
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from estimator_core._plugins import settings
from estimator_core.errors import ArgumentError


def add_every(group: argparse._ArgumentGroup, *flags: str, **given: Any) -> None:  # pyright: ignore[reportPrivateUsage]
    """Adds an option of every command, under a name that no option of a command itself has."""
    given.setdefault("dest", "every_" + flags[-1].removeprefix("--").replace("-", "_"))
    group.add_argument(*flags, **given)


def add_plugin_switches(parser: argparse.ArgumentParser, *, shown: bool) -> None:
    """Adds `--plugins`, `--block-plugin`, `--locked`, `--no-plugins`, `--strict-plugins` and `--plugin-option`."""
    group = parser.add_argument_group("plugins", argument_default=argparse.SUPPRESS)
    switches: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("--plugins", f"load these alone ({settings.ONLY})", {"metavar": "A,B"}),
        ("--block-plugin", f"load all but it ({settings.BLOCK})", {"metavar": "NAME", "action": "append"}),
        ("--locked", f"refuse others than {settings.LOCK_FILE} names ({settings.LOCK})", {"action": "store_true"}),
        ("--no-plugins", f"load none ({settings.NO_AUTOLOAD}=1)", {"action": "store_true"}),
        ("--strict-plugins", f"a broken one is an error ({settings.STRICT}=1)", {"action": "store_true"}),
        ("--plugin-option", "set an option of a plugin", {"metavar": "PLUGIN.NAME=VALUE", "action": "append"}),
    )
    for flag, text, given in switches:
        add_every(group, flag, help=text if shown else argparse.SUPPRESS, **given)


def plugin_variables(args: argparse.Namespace) -> dict[str, str]:
    """What the switches put into the environment: processes that a command starts choose the same plugins."""
    given = vars(args)
    changes: dict[str, str] = {}
    if "every_plugins" in given:
        changes[settings.ONLY] = args.every_plugins
    if "every_block_plugin" in given:
        changes[settings.BLOCK] = ",".join(filter(None, [os.environ.get(settings.BLOCK, ""), *args.every_block_plugin]))
    if "every_no_plugins" in given:
        changes |= {settings.NO_AUTOLOAD: "1", settings.ONLY: ""}
    if "every_locked" in given:
        changes[settings.LOCK] = os.environ.get(settings.LOCK) or settings.LOCK_FILE
    if "every_strict_plugins" in given:
        changes[settings.STRICT] = "1"
    for text in given.get("every_plugin_option", ()):
        changes |= dict([_option(text)])
    if changes:
        changes[settings.SWITCHED] = ",".join([*changes, os.environ.get(settings.SWITCHED, "")])
    return changes


@contextmanager
def changed_environment(changes: Mapping[str, str]) -> Generator[None]:
    """Sets variables while a command runs."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    plugin, dot, option = name.rpartition(".")  # the name of a distribution may have dots
    if not (equals and dot and plugin and option):
        raise ArgumentError(f"--plugin-option {text!r}: write PLUGIN.NAME=VALUE, such as acme-tracker.url=host:8080")
    return settings.option_variable(plugin, option), value
