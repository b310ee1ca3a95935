"""What estimator-terminal declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from estimator_core.errors import PreemptedError
from estimator_core.plugins import Command, Kind

if TYPE_CHECKING:
    from estimator_core.hooks import Run

ESTIMATOR_PLUGIN_API = (1, 1)

_log = logging.getLogger("estimator_terminal")
#: The packages installed when a training began, by the identity of its configuration: an observer gets a new view of
#: the run each time.
_began: dict[int, dict[str, int]] = {}


def estimator_kinds() -> Sequence[Kind]:
    """Commands as components, with a suite. `estimator new-plugin --kind command` begins one."""
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
    """The commands `estimator completion` and `estimator doctor`."""
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
    """Notes the installed packages."""
    from estimator_terminal.replaced import installed_packages

    if run.mode == "train":
        _began[id(run.config)] = installed_packages()


def estimator_run_end(run: Run, error: BaseException | None) -> None:
    """Names packages that were replaced during a failed run."""
    from estimator_terminal.replaced import replaced_packages

    before = _began.pop(id(run.config), None) if run.mode == "train" else None
    if before is None or error is None or isinstance(error, PreemptedError):
        return
    replaced = replaced_packages(before)
    if replaced:
        _log.warning(
            "While this training was under way, packages were replaced: %s. Modules of both versions may be in this "
            "process, which alone explains odd errors. Start it again.",
            ", ".join(replaced),
        )
