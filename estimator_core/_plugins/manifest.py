"""Compares the plugins a checkpoint or export was made with to those in use now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def compare_versions(
    recorded: Iterable[Mapping[str, str]], present: Iterable[Mapping[str, str]], *, what: str = "this checkpoint"
) -> list[str]:
    """One line for each recorded distribution that is absent now, or whose version differs.

    Args:
        recorded: `Plugins.versions()` as the manifest kept it.
        present: `Plugins.versions()` now.
        what: what was made with them.

    Example:
        >>> compare_versions([{"distribution": "acme", "version": "1.0"}], [])
        ['this checkpoint was made with acme 1.0, which is not in use here: pip install acme==1.0']
    """
    now = {row["distribution"]: row["version"] for row in present}
    lines: list[str] = []
    for row in recorded:
        name, version = row["distribution"], row["version"]
        if name not in now:
            lines.append(
                f"{what} was made with {name} {version}, which is not in use here: pip install {name}=={version}"
            )
        elif now[name] != version:
            lines.append(f"{what} was made with {name} {version}; here it is {now[name]}")
    return lines
