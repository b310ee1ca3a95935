"""The switches of `estimator` that say which plugins may load; they stand before the command."""

from __future__ import annotations

import argparse
import os
from collections.abc import Generator
from contextlib import contextmanager

from estimator_core._plugins import settings
from estimator_core.errors import ArgumentError


def add_plugin_switches(parser: argparse.ArgumentParser) -> None:
    """Adds `--plugins`, `--block-plugin`, `--no-plugins`, `--strict-plugins` and `--plugin-option`."""
    group = parser.add_argument_group("plugins")
    group.add_argument("--plugins", metavar="A,B", help=f"load these alone ({settings.ONLY})")
    group.add_argument("--block-plugin", metavar="NAME", action="append", help=f"load all but it ({settings.BLOCK})")
    locked = f"refuse others than {settings.LOCK_FILE} names ({settings.LOCK})"
    group.add_argument("--locked", action="store_true", help=locked)
    group.add_argument("--no-plugins", action="store_true", help=f"load none ({settings.NO_AUTOLOAD}=1)")
    group.add_argument("--strict-plugins", action="store_true", help=f"a broken one is an error ({settings.STRICT}=1)")
    group.add_argument(
        "--plugin-option", metavar="PLUGIN.NAME=VALUE", action="append", help="set an option of a plugin"
    )


@contextmanager
def plugin_environment(args: argparse.Namespace) -> Generator[None]:
    """Puts the switches into the environment while a command runs: processes it starts choose the same plugins."""
    changes: dict[str, str] = {}
    if args.plugins is not None:
        changes[settings.ONLY] = args.plugins
    if args.block_plugin:
        changes[settings.BLOCK] = ",".join(filter(None, [os.environ.get(settings.BLOCK, ""), *args.block_plugin]))
    if args.no_plugins:
        changes |= {settings.NO_AUTOLOAD: "1", settings.ONLY: ""}
    if args.locked:
        changes[settings.LOCK] = os.environ.get(settings.LOCK) or settings.LOCK_FILE
    if args.strict_plugins:
        changes[settings.STRICT] = "1"
    for text in args.plugin_option or ():
        changes |= dict([_option(text)])
    if changes:
        changes[settings.SWITCHED] = ",".join([*changes, os.environ.get(settings.SWITCHED, "")])
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
