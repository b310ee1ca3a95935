"""Print the completion script of a shell.

    estimator completion bash > ~/.local/share/bash-completion/completions/estimator
    estimator completion zsh > ~/.zfunc/_estimator
    estimator completion fish > ~/.config/fish/completions/estimator.fish

The script knows the packages that are installed now: print it again after installing another.
"""

from __future__ import annotations

import argparse

from estimator_terminal.completion import SHELLS, completion_script


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator completion`."""
    parser.add_argument("shell", choices=SHELLS, help="whose script")


def run(args: argparse.Namespace) -> int:
    """Prints the script."""
    print(completion_script(args.shell))
    return 0
