"""Runs a module that is a command: what it defines, and how it is called."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


def run_module(module: Any, program: str, arguments: Sequence[str]) -> int:
    """Parses the arguments of a command and runs it; returns its exit code.

    Args:
        module: has `configure(parser)`, `run(args)` and a docstring, which is the description.
        program: what the user typed before the arguments, for the usage text.
        arguments: the words after it.
    """
    parser = argparse.ArgumentParser(
        prog=program, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    module.configure(parser)
    return int(module.run(parser.parse_args(arguments)) or 0)
