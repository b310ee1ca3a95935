"""The compiler flags that the GPU backend sets, their reasons, and how each is replaced."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class CompilerFlag:
    """A flag of XLA.

    Attributes:
        name: the name, without the dashes.
        value: the value that the backend sets.
        why: the reason for the value.
    """

    name: str
    value: str
    why: str


#: The compiler flags that the backend sets, unless the user sets them.
DEFAULT_FLAGS = (
    CompilerFlag(
        name="xla_gpu_enable_latency_hiding_scheduler",
        value="true",
        why="orders the program so that collectives run while the device computes",
    ),
    CompilerFlag(
        name="xla_gpu_enable_pipelined_all_gather",
        value="true",
        why="in a loop over layers, gathers the parameters of the next layer during this one (fully sharded states)",
    ),
    CompilerFlag(
        name="xla_gpu_enable_pipelined_reduce_scatter",
        value="true",
        why="the same for gradients on their way back to their shards",
    ),
    CompilerFlag(
        name="xla_gpu_enable_pipelined_all_reduce",
        value="true",
        why="the same for gradients of replicated parameters",
    ),
    CompilerFlag(
        name="xla_gpu_enable_while_loop_double_buffering",
        value="true",
        why="unrolls loops over layers twice, which avoids the copies between iterations and lets collectives overlap",
    ),
)


def flag_words(changes: Mapping[str, object], environment: str, known: Callable[[str], bool]) -> list[str]:
    """Returns the words to append to `XLA_FLAGS`.

    Args:
        changes: the values by flag name that replace the defaults. None leaves a flag out. Further flags may be named.
        environment: the current value of `XLA_FLAGS`. A flag that it sets, in either spelling, stays as it is.
        known: the function that returns whether this jaxlib knows a flag. XLA ends the process at an unknown flag.

    Example:
        >>> flag_words({"xla_gpu_enable_pipelined_all_reduce": None}, "", lambda name: "all_reduce" in name)
        []
        >>> flag_words({"xla_gpu_autotune_level": 2}, "", lambda name: "autotune" in name)
        ['--xla_gpu_autotune_level=2']
    """
    wanted: dict[str, object] = {flag.name: flag.value for flag in DEFAULT_FLAGS}
    wanted.update({name.removeprefix("--"): value for name, value in changes.items()})
    given = {word.lstrip("-").partition("=")[0] for word in environment.split()}
    return [
        f"--{name}={_text(value)}"
        for name, value in wanted.items()
        if value is not None and name not in given and known(name)
    ]


#: From jaxlib 0.11 on, XLA reads these flags only from the environment. Its compilers accept these options instead.
OPTIONS = {
    "xla_gpu_enable_pipelined_all_gather": "xla_gpu_pipeline_all_gather",
    "xla_gpu_enable_pipelined_reduce_scatter": "xla_gpu_pipeline_reduce_scatter",
    "xla_gpu_enable_pipelined_all_reduce": "xla_gpu_pipeline_all_reduce",
}
_ON, _DEFAULT = "COLLECTIVE_PIPELINING_MODE_ON", "COLLECTIVE_PIPELINING_MODE_DEFAULT"
_MODES = {"true": _ON, "1": _ON, "false": _DEFAULT, "0": _DEFAULT}


def compiler_options(words: Iterable[str], known: Callable[[str], bool]) -> dict[str, str | bool]:
    """Returns the compiler options with the effect of words in `XLA_FLAGS`.

    Args:
        words: the result of `flag_words`.
        known: the function that returns whether this jaxlib knows a name.

    Example:
        >>> compiler_options(["--xla_gpu_enable_pipelined_all_reduce=true"], lambda name: False)
        {'xla_gpu_enable_pipelined_all_reduce': True}
        >>> compiler_options(["--xla_gpu_enable_pipelined_all_reduce=true"], lambda name: True)
        {'xla_gpu_pipeline_all_reduce': 'COLLECTIVE_PIPELINING_MODE_ON'}
    """
    options: dict[str, str | bool] = {}
    for name, _, value in (word.removeprefix("--").partition("=") for word in words):
        option = OPTIONS.get(name)
        if option is not None and known(option):
            options[option] = _MODES.get(value, value)
        else:
            options[name] = {"true": True, "false": False}.get(value, value)
    return options


def known_to_jaxlib(names: Iterable[str]) -> frozenset[str]:
    """Returns the flags that the installed jaxlib has, because its shared library contains their names."""
    spec = find_spec("jaxlib")
    remaining, found = set(names), set[str]()
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    for path in sorted(library for folder in folders for library in Path(folder).glob("*.so")):
        if not remaining or path.stat().st_size == 0:
            continue
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            here = {name for name in remaining if content.find(name.encode()) >= 0}
        found |= here
        remaining -= here
    return frozenset(found)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
