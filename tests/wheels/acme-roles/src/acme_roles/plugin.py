"""The declarations of acme-roles. A run uses a component only if its RunConfig names it."""

from __future__ import annotations

from estimator_core.plugins import Component

ESTIMATOR_PLUGIN_API = (1, 1)


def estimator_components() -> list[Component]:
    """Returns one component per role, and a second export check."""
    declared = (
        ("checkpoint_policy", "acme_doubling", "Doubling", "Saves at powers of two."),
        ("hook", "acme_log", "Log", "Prints step and loss."),
        ("export_check", "acme_counting", "Counting", "Counts what it compares, and accepts what is close."),
        ("export_check", "acme_strict", "Strict", "Accepts no export."),
    )
    return [
        Component(kind=kind, name=name, target=f"acme_roles.roles:{target}", summary=summary)
        for kind, name, target, summary in declared
    ]
