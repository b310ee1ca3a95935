"""`run.json`: the arguments and versions with which a run was started. Secrets are masked."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import platform
import re
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from estimator_core._files import draft_of
from estimator_core._journal.reading import lineage_of

FILE = "run.json"
_MOST_BYTES = 64 << 20
_PACKAGES = ("estimator-core", "jax", "jaxlib", "numpy", "optax", "orbax-checkpoint", "flax")


def write_run_record(
    model_dir: Path, *, config: Any, params: Any, call: Mapping[str, Any], plugins: list[dict[str, str]]
) -> None:
    """Atomically writes the record of the newest start. "starts" lists all starts, as the journal has them."""
    path = model_dir / FILE
    lineage = lineage_of(model_dir)
    starts = [] if lineage is None else lineage.starts[-100:]
    record = {
        "versions": versions(),
        "arguments": without_secrets(sys.argv),
        "directory": _directory(),
        "run_config": {field.name: plain(getattr(config, field.name)) for field in dataclasses.fields(config)},
        "hparams": plain(params),
        "call": plain(call),
        "plugins": plugins,
        "starts": [{"time": _local_time(took.time), "step": took.step} for took in starts],
    }
    _write(path, record)


def _directory() -> str | None:
    """Returns the working directory of the process, to which its arguments are relative; None if it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None


def _local_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(seconds))


def _write(path: Path, record: Mapping[str, object]) -> None:
    with draft_of(path, durable=False) as draft:
        draft.write_text(_lines(record), encoding="utf-8")


def _lines(record: Mapping[str, object]) -> str:
    """Returns JSON with one line per entry. json.dumps(indent=1) takes a millisecond, ten times as long as the rest."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in record.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def note_end(model_dir: Path, step: int, reason: str, *, failed: bool = False, owed: bool = False) -> None:
    """Records that the newest call ended without interruption, with its step and reason.

    Args:
        model_dir: the directory of the run.
        step: the last step. For a failure, the first step whose values are not finite, if known.
        reason: the reason for the end.
        failed: whether the call ended with an error.
        owed: whether its last evaluations and exports are still owed. Until they are complete, it has not ended.
    """
    path, more = model_dir / FILE, {"owed": True} if owed else {}
    if record := _read(path):
        _write(path, {**record, "ended": {"step": step, "reason": reason, "failed": failed, **more}})


def ended_step(model_dir: Path, *, well: bool = False) -> int | None:
    """Returns the step at which the newest call ended; None while it runs or if it was interrupted.

    Args:
        model_dir: the directory of the run.
        well: whether only an end without an error counts.
    """
    lineage = lineage_of(model_dir)
    if lineage is not None:
        end = lineage.ended
        return None if end is None or (well and end.failed) else end.step
    try:
        ended = _read(model_dir / FILE)["ended"]
        return None if ended.get("owed") or (well and ended["failed"]) else int(ended["step"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None


def changed_hparams(model_dir: Path, params: Any) -> str:
    """Returns the hyperparameters that differ from those of the newest start, as a text; "" if none is known to differ.

    A value whose repr contains an address is not compared.
    """
    before, now = _read(model_dir / FILE).get("hparams"), plain(params)
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return ""
    old, new = ({name: json.dumps(value, sort_keys=True) for name, value in values.items()} for values in (before, now))
    pairs = [(name, old.get(name, "not set"), new.get(name, "not set")) for name in {**old, **new}]
    known = [(name, *both) for name, *both in pairs if both[0] != both[1] and " at 0x" not in "".join(both)]
    return ", ".join(f"{name} was {was} and is {now}" for name, was, now in map(_shortened, known))


def _shortened(change: Sequence[str]) -> Sequence[str]:
    """Returns a name and two texts, of which a long beginning that they share is left out."""
    name, *both = change
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(*both, strict=False))
    start = max(0, sum(1 for _ in alike) - 30)
    return name, *(f"{'...' * bool(start)}{text[start:]:.60}" for text in both)


def _read(path: Path) -> dict[str, Any]:
    """Returns the record; an empty one if the file does not exist or has other contents."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return {}
        record = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


@cache  # reading the metadata of the packages takes longer than a hundred steps of a small model
def versions() -> Mapping[str, str]:
    """Returns the versions of Python and of the packages on which a run depends."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def plain(value: Any) -> Any:
    """Returns a value in a form that JSON can represent. Any other value becomes its repr.

    The repr of a large array is followed by a checksum of all its numbers.
    """
    if isinstance(value, str):
        return without_user_info(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if (
        callable(getattr(value, "values", None))
        and not isinstance(value, Mapping)
        and callable(getattr(value, "to_json", None))
    ):
        value = value.values()
    if isinstance(value, Mapping):
        return {str(k): MASK if isinstance(v, str) and is_secret(str(k)) else plain(v) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value), key=repr)  # their order differs in every process
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    shown = repr(value)  # numpy shows the first and last numbers of a large array
    if "..." in shown and hasattr(value, "tobytes") and not getattr(getattr(value, "dtype", 0), "hasobject", True):
        shown += f" {zlib.crc32(value.tobytes()):08x}"
    return shown


MASK = "***"
_SECRET = re.compile(r"pass(word|wd|phrase)|secret|token$|api[_-]?key|access[_-]?key|credential|private[_-]?key", re.I)
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+:[^/@\s]+(?=@)")
#: A name and its assignment, anywhere: `name=`, `"name": `, `name: `, `["name"] =`. The value follows.
_ASSIGNMENT = re.compile(r"""(?<![\w.-])([\w.-]+)(?:["'\]]*\s*=|["']\s*:|:\s)\s*""")


def is_secret(name: str) -> bool:
    """Returns whether the value of a name must be masked.

    Example:
        >>> [name for name in ("api_key", "token_count", "wandb-token", "password") if is_secret(name)]
        ['api_key', 'wandb-token', 'password']
    """
    return _SECRET.search(name) is not None


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """Returns command-line arguments with masked secrets.

    In each word, everything from the first secret value on is masked.

    Example:
        >>> without_secrets(["train.py", "--api-key=abc", "--password", "abc", "--url", "https://me:abc@host/"])
        ['train.py', '--api-key=***', '--password', '***', '--url', 'https://***@host/']
        >>> without_secrets(["--hook", "tracker(name=a, api_key=abc)"])
        ['--hook', 'tracker(name=a, api_key=***']
    """
    masked: list[str] = []
    expected = False
    for argument in arguments:
        if expected and not argument.startswith("-"):
            masked.append(MASK)
        else:
            masked.append(without_user_info(_cut_at_secret(argument)))
        expected = argument.startswith("-") and "=" not in argument and is_secret(argument)
    return masked


def _cut_at_secret(word: str) -> str:
    """Returns a word up to the value of its first secret.

    The end of a value is unknown, because a password may contain a comma.
    """
    places = [found.end() for found in _ASSIGNMENT.finditer(word) if is_secret(found[1])]
    return word[: places[0]] + MASK if places else word


def without_user_info(text: str) -> str:
    """Returns a text in which user name and password of URLs are masked."""
    return _USER_INFO.sub(MASK, text)
