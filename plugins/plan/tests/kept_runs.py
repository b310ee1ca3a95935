"""Programs that a plan keeps, and runs that may use them, in new processes with eight CPU devices.

python kept_runs.py plan FOLDER, then python kept_runs.py run FOLDER RUNS
"""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Any

import jax
import jax.monitoring

import estimator_core as ec
from estimator_plan import Found, keep_program
from plugins.plan.tests.lent_cpus import LentCPUs, batch, layers_model_fn

WAYS: dict[str, dict[str, Any]] = {
    "fsdp": {"mesh": {"data": 1, "fsdp": -1}, "partition_rules": [(".*", ec.FullySharded("fsdp"))]},
    "data": {"mesh": {"data": -1}},
}


class Seen(logging.Handler):
    """Records for each compilation of a training step whether it was loaded, and the messages of the log."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[bool] = []
        self.told: list[str] = []
        self._hits = 0
        jax.monitoring.register_event_listener(self._event)
        jax.monitoring.register_event_duration_secs_listener(self._duration)

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())

    def _event(self, event: str, **details: Any) -> None:
        self._hits += event == "/jax/compilation_cache/cache_hits"

    def _duration(self, event: str, seconds: float, **details: Any) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            if details["fun_name"] == "jit(_step)":
                self.loaded.append(self._hits > 0)
            self._hits = 0

    def taken(self) -> dict[str, Any]:
        found = {"loaded": self.loaded, "told": self.told}
        self.loaded, self.told = [], []
        return found


def plan(folder: str) -> None:
    backend = LentCPUs()
    found = Found(topology=backend.topology("cpu", (8,)), backend=backend)
    for way in WAYS.values():
        keep_program(ec.Estimator(layers_model_fn, config=ec.RunConfig()), batch(), found, folder, **way)


def run(folder: str, runs: str) -> None:
    seen = Seen()
    logging.getLogger("estimator_plan").setLevel(logging.INFO)
    logging.getLogger("estimator_plan").addHandler(seen)

    def trained(name: str, way: str, examples: int = 64, **settings: Any) -> dict[str, Any]:
        config = ec.RunConfig(f"{runs}/{name}", tf_random_seed=1, compile_cache=folder, **WAYS[way], **settings)
        drawn = batch(examples)
        ec.Estimator(layers_model_fn, config=config).train(lambda: [(drawn.features, drawn.labels)] * 2)
        return seen.taken()

    caches = jax.config.jax_persistent_cache_enable_xla_caches  # type: ignore[attr-defined]
    found = {
        "fsdp": trained("fsdp", "fsdp"),
        "data": trained("data", "data"),
        "resumed": trained("fsdp", "fsdp"),
        "batch": trained("batch", "fsdp", examples=128),
        "program": trained("program", "fsdp", remat="full"),
    }
    os.environ["XLA_FLAGS"] += " --xla_cpu_enable_fast_math=false"  # jax reads it for the name of each program
    found["flags"] = trained("flags", "fsdp")
    assert jax.config.jax_persistent_cache_enable_xla_caches == caches  # type: ignore[attr-defined]
    print(json.dumps(found))


if __name__ == "__main__":
    {"plan": plan, "run": run}[sys.argv[1]](*sys.argv[2:])
