"""A process that is lost early or fails late: `connecting_worker.py MODEL_DIR WHAT`.

"called": process 1 is killed after the roll call. "connected": it is killed as soon as jax has connected it.
"introduced": it is killed once all processes know it, before its devices exist. "chief": process 0 raises at step 4,
while the other process waits for it in a collective operation.
"""

import os
import signal
import sys
from typing import Any

import models

import estimator_core as ec


class Raises(ec.Hook):
    """Raises at a step."""

    def after_step(self, run: Any, step: int, out: Any) -> None:
        if step == 4 and os.environ["JAX_PROCESS_ID"] == "0":
            raise RuntimeError("a hook of this process broke")


def die_after(module: Any, name: str) -> None:
    """Kills this process at the end of a function."""
    function = getattr(module, name)

    def called(*arguments: Any, **more: Any) -> None:
        function(*arguments, **more)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(module, name, called)


def main(model_dir: str, what: str) -> None:
    from estimator_cluster import connecting, service

    last = {"called": (connecting, "_call_the_roll"), "connected": (service, "start")}
    if what != "chief" and os.environ["JAX_PROCESS_ID"] == "1":
        die_after(*last.get(what, (connecting, "_introduce")))
    estimator = ec.Estimator(models.classifier, config=ec.RunConfig(model_dir=model_dir), params={"width": 8})
    estimator.train(models.train_input(16), steps=50, hooks=[Raises()] if what == "chief" else [])


if __name__ == "__main__":
    main(*sys.argv[1:])
