"""Finds versions of installed packages that do not fit together."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: Packages that are checked in addition to those of plugins, with their requirements.
_FOUNDATION = ("jax", "jaxlib", "optax", "orbax-checkpoint", "flax")


def unfit_versions(distributions: Iterable[str]) -> list[str]:
    """Returns a line for each requirement that the installed packages do not meet.

    Args:
        distributions: the distributions whose requirements are checked. Distributions that are not installed are
            skipped.

    Example:
        >>> unfit_versions(["estimator-core"])
        []
    """
    lines: list[str] = []
    for name in dict.fromkeys([*map(canonicalize_name, distributions), *_FOUNDATION]):
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        for text in found.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                lines += _unmet(f"{name} {found.version}", requirement)
    return lines


def _unmet(who: str, requirement: Requirement) -> list[str]:
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return [f'{who} requires {requirement.name}, which is not installed: pip install "{requirement}"']
    if requirement.specifier.contains(version, prereleases=True):
        return []
    return [f'{who} requires {requirement}, but {version} is installed: pip install "{requirement}"']
