"""Helpers that describe a fault in a sound component."""

from __future__ import annotations

from tests.mutants.record import Mutant


def template(kind: str) -> str:
    """Returns the path of the component that `estimator new-plugin acme-KIND --kind KIND` writes, from the root."""
    package = f"acme_{kind}"
    return f"plugins/{package.replace('_', '-')}/src/{package}/{kind}.py"


def sound(name: str) -> str:
    """Returns the path of a sound component of the test kit's tests, from the root."""
    return f"plugins/testing/tests/sound_{name}.py"


def faults(kind: str, file: str, suite: str = "", /, **pairs: tuple[str, str]) -> tuple[Mutant, ...]:
    """Returns the mutants of a component.

    Args:
        kind: the kind of the component, whose suite must kill them.
        file: the source of the component.
        suite: the class of tests that examines it. By default, the class of the template.
        pairs: a piece of the source and its replacement, by the name of the fault.
    """
    return tuple(
        Mutant(
            name=f"{kind}-{name}".replace("_", "-"),
            guarantee=kind,
            file=file,
            old=old,
            new=new,
            tests=(suite,) if suite else (),
        )
        for name, (old, new) in pairs.items()
    )
