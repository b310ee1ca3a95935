"""Watches foreign code while it is imported: how long it took, what it printed, which heavy packages it pulled in."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass

_ARRAYS = ("jax", "jaxlib", "numpy", "scipy", "orbax", "optax", "flax", "equinox", "keras", "tensorflow", "torch")
_DATA = ("pandas", "pyarrow", "sklearn", "grain", "tokenizers", "transformers", "onnx")
_PICTURES = ("tensorboardX", "tensorboard", "matplotlib", "IPython")
#: Packages that have no place in a module imported at every start.
HEAVY_PACKAGES = frozenset({*_ARRAYS, *_DATA, *_PICTURES})
SLOW_SECONDS = 0.1


@dataclass
class Observed:
    """What was seen; complete once the `with` block is left."""

    seconds: float = 0.0
    output: str = ""
    heavy: tuple[str, ...] = ()
    before: frozenset[str] = frozenset()

    def notes(self) -> tuple[str, ...]:
        """One line for each thing that should not happen at import."""
        notes: list[str] = []
        if self.output.strip():
            notes.append(f"printed at import: {self.output.strip().splitlines()[0][:80]!r}")
        if self.heavy:
            notes.append(f"imports {', '.join(self.heavy)} at start-up; import them where they are used")
        if self.seconds > SLOW_SECONDS:
            notes.append(f"importing it took {self.seconds:.2f} s")
        return tuple(notes)


@contextmanager
def observe() -> Generator[Observed]:
    """Keeps what the block prints away from the terminal, so that lists and JSON stay clean, and measures it."""
    observed = Observed(before=frozenset(HEAVY_PACKAGES & sys.modules.keys()))
    buffer = io.StringIO()
    start = time.perf_counter()
    try:
        with redirect_stdout(buffer), redirect_stderr(buffer):
            yield observed
    finally:
        observed.seconds = time.perf_counter() - start
        observed.output = buffer.getvalue()
        observed.heavy = tuple(sorted((HEAVY_PACKAGES & sys.modules.keys()) - observed.before))
