"""What acme-hook declares to estimator-core. Imported at start-up: keep it light."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from estimator_core.hooks import Hook, Run
from estimator_core.plugins.records import Component, Option

ESTIMATOR_PLUGIN_API = (1, 0)


def estimator_components() -> list[Component]:
    """The hook `acme_hook`; its file is imported when somebody asks for it."""
    return [
        Component(
            kind="hook",
            name="acme_hook",
            target="acme_hook.hook:AcmeHookHook",
            summary="Ends the training once the loss is low enough.",
        )
    ]


def estimator_options() -> list[Option]:
    """Whether a companion joins each run."""
    return [Option(name="watch", type=bool, default=False, help="note when hooks look")]


def estimator_run_hooks(run: Run, options: Mapping[str, Any]) -> Sequence[Hook]:
    """The companion."""
    from acme_hook.watch import Companion

    return [Companion()] if options["watch"] and run.mode == "train" else []
