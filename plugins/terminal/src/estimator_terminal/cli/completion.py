"""Print the completion script of a shell: `estimator completion bash > FILE`.

FILE is ~/.local/share/bash-completion/completions/estimator for bash, ~/.zfunc/_estimator for zsh, and
~/.config/fish/completions/estimator.fish for fish. The script knows the packages that are installed now: print it
again after installing another.
"""

from __future__ import annotations

import argparse

from estimator_terminal.completion import SHELLS, completion_script


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimator completion`."""
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(args: argparse.Namespace) -> int:
    """Prints the script."""
    print(completion_script(args.shell))
    return 0
