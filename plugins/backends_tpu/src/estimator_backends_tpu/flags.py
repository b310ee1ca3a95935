"""Flags of the TPU compiler that a program sets. The backend sets none, because libtpu has the recommended values."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from estimator_core.errors import ArgumentError

VARIABLE = "LIBTPU_INIT_ARGS"
#: The words that the last call of `configure` has appended.
_OWN: list[str] = []


def configure(*, flags: Mapping[str, object]) -> None:
    """Sets flags of the TPU compiler. Call it before jax starts.

    A flag that the environment sets in `LIBTPU_INIT_ARGS` stays as it is. The flags of a later call replace those of an
    earlier one.

    Args:
        flags: the values by name, with or without the dashes.

    Raises:
        ArgumentError: jax has started already, or libtpu does not have the flag and would end the process.

    Example:
        >>> import estimator_backends_tpu
        >>> estimator_backends_tpu.configure(flags={})
    """
    from jax._src import xla_bridge  # the only place that shows this without starting jax

    if flags and xla_bridge.backends_are_initialized():
        raise ArgumentError(
            "estimator_backends_tpu.configure was called too late: the compiler has already started with other flags. "
            "Call it before the first Estimator trains, evaluates or predicts."
        )
    _OWN[:] = add_flags(os.environ, flags, _library(), before=_OWN)


def add_flags(
    environment: MutableMapping[str, str],
    flags: Mapping[str, object],
    library: Path | None,
    *,
    before: Sequence[str] = (),
) -> list[str]:
    """Appends flags to `LIBTPU_INIT_ARGS`.

    Args:
        environment: the environment of the process. It is changed.
        flags: the values by name.
        library: the path of libtpu, which contains the names of its flags. None: it is not installed, so names are not
            checked.
        before: the words that an earlier call has appended. They are replaced.

    Returns:
        The words that were appended.

    Raises:
        ArgumentError: libtpu does not have the flag, or a value cannot be written.

    Example:
        >>> environment = {"LIBTPU_INIT_ARGS": "--xla_tpu_scoped_vmem_limit_kib=65536"}
        >>> add_flags(environment, {"xla_tpu_scoped_vmem_limit_kib": 1, "xla_enable_async_all_gather": True}, None)
        ['--xla_enable_async_all_gather=true']
        >>> environment["LIBTPU_INIT_ARGS"]
        '--xla_tpu_scoped_vmem_limit_kib=65536 --xla_enable_async_all_gather=true'
    """
    said = [word for word in environment.get(VARIABLE, "").split() if word not in before]
    given = {word.lstrip("-").partition("=")[0] for word in said}
    wanted = {name.lstrip("-"): _text(name, value) for name, value in flags.items()}
    if library is not None and (unknown := sorted(wanted.keys() - _known(library, wanted))):
        raise ArgumentError(
            f"The installed libtpu has no flag {', '.join(unknown)}, and would end the process. Correct the name, or "
            "install the libtpu that has it."
        )
    words = [f"--{name}={text}" for name, text in wanted.items() if not {name, f"no{name}"} & given]
    if words or before:
        environment[VARIABLE] = " ".join([*said, *words])
    return words


def _library() -> Path | None:
    spec = find_spec("libtpu")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return next((path for folder in folders for path in Path(folder).glob("libtpu*.so")), None)


def _known(library: Path, names: Iterable[str]) -> set[str]:
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return {name for name in names if content.find(b"\0" + name.encode() + b"\0") >= 0}


def _text(name: str, value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if value is None or not text or any(letter.isspace() for letter in text):
        raise ArgumentError(
            f"The flag {name} needs a value without spaces; given: {value!r}. Leave it out to unset it."
        )
    return text
