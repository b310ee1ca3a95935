"""Compiles a traced training step for its devices."""

from __future__ import annotations

import contextlib
import re
import tempfile
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

from estimator_core.errors import EstimatorError
from estimator_core.lowering import TracedStep

#: The setting of jax for the caches of XLA for GPUs. With it, the path of the folder is a part of the names of
#: programs.
ANY_FOLDER = "jax_persistent_cache_enable_xla_caches"


@dataclass(frozen=True, kw_only=True)
class CompiledStep:
    """A compiled training step.

    Attributes:
        program: the result of `lowered.compile()`, or None if the compiler found that the program does not fit.
        seconds: the seconds of lowering and compiling.
        needed_bytes: the required device memory according to the compiler, if the program does not fit.
    """

    program: Any
    seconds: float
    needed_bytes: int | None = None


def compile_step(
    step: TracedStep, options: Mapping[str, str | bool] | None = None, *, cache: Path | None = None
) -> CompiledStep:
    """Compiles a traced step for its devices. A program that does not fit raises no error.

    Args:
        step: the traced step.
        options: the flags of the compiler by name, which a run would set in the environment.
        cache: the empty folder in which jax keeps the program. None: it is not kept.

    Raises:
        EstimatorError: the compiler fails for another reason than memory.
    """
    began = time.monotonic()
    with step.placement.context(), _compile_cache(cache):
        try:
            program = step.traced.lower().compile(compiler_options=dict(options) if options else None)
        except jax.errors.JaxRuntimeError as error:
            needed = needed_bytes(str(error))
            if needed is None:
                raise EstimatorError(f"the training step does not compile for these devices: {error}") from error
            return CompiledStep(program=None, seconds=time.monotonic() - began, needed_bytes=needed)
    return CompiledStep(program=program, seconds=time.monotonic() - began)


def program_text(step: TracedStep, program: Any, options: Mapping[str, str | bool] | None = None) -> str:
    """Returns the text of a compiled program.

    If the compiler is newer than jaxlib, jaxlib may not read its program. Then the step is compiled again, and the
    compiler itself writes the text.

    Args:
        step: the traced step.
        program: the same step, compiled.
        options: the flags with which the program was compiled.

    Raises:
        JaxRuntimeError: jaxlib cannot read the program, and the compiler does not write it.
    """
    try:
        text: str = program.as_text()
    except jax.errors.JaxRuntimeError:
        with tempfile.TemporaryDirectory(prefix="estimator-plan-") as folder:
            with contextlib.suppress(EstimatorError):
                compile_step(step, {**(options or {}), "xla_dump_to": folder, "xla_dump_hlo_as_text": True})
            written = sorted(Path(folder).glob("*after_optimizations.txt"), key=lambda file: file.stat().st_size)
            if not written:
                raise
            text = written[-1].read_text(encoding="utf-8")
    return text


def needed_bytes(message: str) -> int | None:
    """Returns the bytes that a compiler requires according to its out-of-memory message, or None for another error.

    Example:
        >>> needed_bytes("RESOURCE_EXHAUSTED: the total memory required (32.00G) exceeds available HBM (15.75G)")
        34359738368
        >>> needed_bytes("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 23.5G of 15.75G hbm.")
        25232932864
    """
    if "RESOURCE_EXHAUSTED" not in message:
        return None
    found = re.search(r"\(([\d.]+)([KMGT]?)\) exceeds", message) or re.search(r"Used ([\d.]+)([KMGT]?)", message)
    return None if found is None else int(float(found[1]) * 1024 ** " KMGT".index(found[2] or " "))


@contextlib.contextmanager
def _compile_cache(folder: Path | None) -> Generator[None]:
    """Keeps the programs that are compiled inside the context in a folder. None turns the cache off, because a cached
    program takes no time to compile, and may lack its text.
    """
    settings: dict[str, Any] = {"jax_enable_compilation_cache": folder is not None}
    if folder is not None:
        settings |= {
            "jax_compilation_cache_dir": str(folder),
            "jax_persistent_cache_min_compile_time_secs": 0.0,
            "jax_persistent_cache_min_entry_size_bytes": 0,
            ANY_FOLDER: None,
        }
    kept = {name: getattr(jax.config, name) for name in settings}
    _set(settings)
    try:
        yield
    finally:
        _set(kept)


def _set(settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)
    if len(settings) > 1:
        compilation_cache.reset_cache()  # jax reads the setting when it first compiles
