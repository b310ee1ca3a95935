"""The declarations of estimator-terminal for estimator-core. They are imported at start-up, so keep it light."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from estimator_core.errors import PreemptedError
from estimator_core.plugins import Command, Kind

if TYPE_CHECKING:
    from estimator_core.hooks import Run

ESTIMATOR_PLUGIN_API = (1, 1)

_log = logging.getLogger("estimator_terminal")
#: `sys.path` and the packages in its folders when the first training of this process began.
_began: list[tuple[list[str], dict[str, int]]] = []


def estimator_kinds() -> Sequence[Kind]:
    """Returns the kind of commands as components, with a suite. `estimator new-plugin --kind command` begins one."""
    return [
        Kind(
            name="command",
            title="commands as components",
            contract="estimator_terminal.command:CommandLine",
            target="a function whose call returns a CommandLine; `_` of its name is typed as `-`",
            suite="estimator_terminal.command_suite:CommandSuite",
            scaffold="estimator_terminal:scaffold",
        )
    ]


def estimator_commands() -> Sequence[Command]:
    """Returns the commands `estimator completion` and `estimator doctor`."""
    return [
        Command(
            name="completion",
            target="estimator_terminal.cli.completion",
            summary="Print the completion script of a shell.",
        ),
        Command(
            name="doctor",
            target="estimator_terminal.cli.doctor",
            summary="Examine the installation: versions, plugins, devices, disk, permissions.",
        ),
    ]


def estimator_run_start(run: Run) -> None:
    """Records the installed packages, once per process."""
    from estimator_terminal.package_changes import installed_packages

    if run.mode == "train" and not _began:
        _began.append((list(sys.path), installed_packages()))


def estimator_run_end(run: Run, error: BaseException | None) -> None:
    """Logs the packages that were replaced before a training failed."""
    from estimator_terminal.package_changes import replaced_packages

    if run.mode != "train" or not _began or error is None or isinstance(error, PreemptedError):
        return
    folders, before = _began[0]
    replaced = replaced_packages(before, folders)
    if replaced:
        _log.warning(
            "Since this process began its first training, packages were replaced: %s. Modules of both versions may be "
            "loaded, which can cause unexpected errors. Start the process again.",
            ", ".join(replaced),
        )
