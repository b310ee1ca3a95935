"""How a fault in a sound component is written down."""

from __future__ import annotations

from tests.mutants.record import Mutant


def template(kind: str) -> str:
    """The component that `estimator new-plugin acme-KIND --kind KIND` writes, from the root."""
    package = f"acme_{kind}"
    return f"plugins/{package.replace('_', '-')}/src/{package}/{kind}.py"


def sound(name: str) -> str:
    """A sound component of the tests of the kit, from the root."""
    return f"plugins/testing/tests/sound_{name}.py"


def faults(kind: str, file: str, suite: str = "", /, **pairs: tuple[str, str]) -> tuple[Mutant, ...]:
    """Mutants of a component.

    Args:
        kind: of the component, whose suite must kill them.
        file: its source.
        suite: the class of tests that examines it; none: that of the template.
        pairs: a piece of the source and what stands there instead, by the name of the fault.
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
