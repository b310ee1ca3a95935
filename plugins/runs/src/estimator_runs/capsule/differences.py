"""The differences of two records of starts: packages, code, flags, seeds, devices, data, in this order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from estimator_runs.capsule.data import BATCH, changed_place

_ABSENT = "absent"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One difference between two runs.

    Args:
        kind: "package", "code", "flag", "seed", "device" or "data".
        name: the name of the part that differs.
        text: the difference in words.
    """

    kind: str
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.text}"


def capsule_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Difference]:
    """Returns the differences between two starts, the most likely cause first.

    Args:
        before: the record of a start.
        now: the record of a later one.

    Example:
        >>> old = {"seeds": {"run_config.tf_random_seed": 1}}
        >>> str(capsule_differences(old, {"seeds": {"run_config.tf_random_seed": 2}})[0])
        'seed run_config.tf_random_seed: was 1, now 2'
    """
    return [
        *_packages(before.get("packages", {}), now.get("packages", {})),
        *_code(before.get("code", {}), now.get("code", {})),
        *_values("flag", before.get("flags", {}), now.get("flags", {})),
        *_values("seed", before.get("seeds", {}), now.get("seeds", {})),
        *_values("device", before.get("hardware", {}), now.get("hardware", {})),
        *_data(before.get("data", {}), now.get("data", {})),
    ]


def _packages(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    for name in sorted({*before, *now}):
        old, new = before.get(name, _ABSENT), now.get(name, _ABSENT)
        if isinstance(old, str) and isinstance(new, str):
            if old != new:
                yield Difference(kind="package", name=name, text=f"was {old}, now {new}")
            continue
        codes = [one.get("code") if isinstance(one, Mapping) else None for one in (old, new)]
        if not any(codes):
            continue  # neither run uses it
        versions = [one["version"] if isinstance(one, Mapping) else one for one in (old, new)]
        if versions[0] != versions[1]:
            yield Difference(kind="package", name=name, text=f"was {versions[0]}, now {versions[1]}")
        elif all(codes) and codes[0] != codes[1]:
            text = f"{versions[0]} has different code (by a hash of its files)"
            yield Difference(kind="package", name=name, text=text)


def _code(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    old, new = before.get("files", {}), now.get("files", {})
    git: Mapping[str, Any] = before.get("git", {})
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            what = "is not loaded now" if name not in new else "was not loaded" if name not in old else "has changed"
            yield Difference(kind="code", name=name, text=f"{what}{_source(git, name) if name in old else ''}")


def _source(git: Mapping[str, Any], name: str) -> str:
    """Returns the place of the code of a start, as far as its record contains it.

    Example:
        >>> _source({"commit": "1f", "diff": "", "untracked": ["a.py"]}, "a.py")
        ' (git did not track it: neither commit 1f nor the diff of the record contains it)'
    """
    if "commit" not in git:
        return ""
    commit = git["commit"][:12]
    if name in git.get("untracked", ()):
        return f" (git did not track it: neither commit {commit} nor the diff of the record contains it)"
    diff = "the diff of the record" if "diff" in git else "changes that git did not report in time"
    masked = ", in which lines are masked or left out" if git.get("diff_changed") else ""
    tracked = "" if "untracked" in git else ", if git tracked it"
    return f" (it was commit {commit}, with {diff}{masked}{tracked})"


def _values(kind: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    for name in sorted({*before, *now}):
        old, new = before.get(name, _ABSENT), now.get(name, _ABSENT)
        if old != new:
            yield Difference(kind=kind, name=name, text=f"was {old}, now {new}")


def _data(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    # The batch depends on the files and arrays, whose differences say more.
    for name in sorted({*before, *now}, key=lambda one: (one.startswith(BATCH), one)):
        old, new = before.get(name), now.get(name)
        if (old is None or new is None) and name.startswith(BATCH):
            continue
        if old is None or new is None:
            yield Difference(kind="data", name=name, text="is not read now" if new is None else "was not read")
        elif old != new:
            yield Difference(kind="data", name=name, text=changed_place(old, new))
