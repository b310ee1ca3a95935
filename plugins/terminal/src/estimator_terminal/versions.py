"""Versions of installed packages that do not fit together."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: Looked at beside the packages of plugins, with what they require.
_FOUNDATION = ("jax", "jaxlib", "optax", "orbax-checkpoint", "flax")


def unfit_versions(distributions: Iterable[str]) -> list[str]:
    """A line for each requirement that is not met by what is installed.

    Args:
        distributions: whose requirements are looked at; those that are not installed are passed over.

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
    return [f'{who} requires {requirement}, and {version} is installed: pip install "{requirement}"']
