"""Lists the files of the core that the smallest training enters: `python -m tests.repo.entered` prints one per line.

A file counts if any of its code runs, including the body of the module.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType


def entered_files(run: Callable[[], None]) -> set[str]:
    """Returns the files of `estimator_core` that a function enters, in all threads, relative to the package.

    The bodies of modules that are already imported do not count, so call it in a fresh process.
    """
    seen: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            seen.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    import estimator_core

    core = Path(str(estimator_core.__file__)).parent
    return {str(Path(name).relative_to(core)) for name in seen if Path(name).is_relative_to(core)}


def smallest_training() -> None:
    """Trains one variable for three steps, without plugins."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    import estimator_core as ec

    def model_fn(features: Mapping[str, jax.Array], labels: jax.Array, mode: str) -> ec.EstimatorSpec:
        slope = ec.get_variable("slope", ())
        loss = jnp.mean((features["x"] * slope - labels) ** 2)
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))

    x = np.arange(8, dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        estimator = ec.Estimator(model_fn, folder, plugins=ec.Plugins(autoload=False))
        estimator.train(ec.inputs.numpy_input_fn({"x": x}, x, batch_size=2, shuffle=False), max_steps=3)


if __name__ == "__main__":
    statement = sys.argv[1] if len(sys.argv) > 1 else None
    files = entered_files(smallest_training if statement is None else lambda: exec(statement))
    print("\n".join(sorted(files)))
