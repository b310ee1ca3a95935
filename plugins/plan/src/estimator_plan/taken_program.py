"""Reports whether a run has loaded the program that a plan kept for it, and otherwise the reason."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping

import jax
import jax.monitoring

from estimator_core.hooks import Run
from estimator_plan.compiling import ANY_FOLDER
from estimator_plan.kept_program import KeptProgram
from estimator_plan.training_plan import versions

_log = logging.getLogger("estimator_plan")
_STEP, _COMPILED, _HIT = "jit(_step)", "/jax/core/compile/backend_compile_duration", "/jax/compilation_cache/cache_hits"
_OTHER = (
    "the program differs from that of the plan. It depends on the model, hyperparameters, dtypes of a batch, rules, "
    "flags (XLA_FLAGS, LIBTPU_INIT_ARGS) and outputs that hooks fetch."
)


class Watch:
    """Lets a run look for the kept programs, and logs whether the first training step of this thread was loaded.

    Args:
        run: the training call.
        kept: the programs in its `compile_cache`.
    """

    def __init__(self, run: Run, kept: list[KeptProgram]) -> None:
        self._run, self._kept, self._thread = run, kept, threading.get_ident()
        self._hit = self._told = False
        self._before = getattr(jax.config, ANY_FOLDER)
        jax.config.update(ANY_FOLDER, None)  # as when the programs were kept
        jax.monitoring.register_event_listener(self._on_event)
        jax.monitoring.register_event_duration_secs_listener(self._on_duration)

    def close(self) -> None:
        """Restores the settings, and removes the listeners."""
        jax.config.update(ANY_FOLDER, self._before)
        jax.monitoring.unregister_event_listener(self._on_event)
        jax.monitoring.unregister_event_duration_listener(self._on_duration)

    def _on_event(self, event: str, **details: str | int) -> None:
        if event == _HIT and threading.get_ident() == self._thread:
            self._hit = True

    def _on_duration(self, event: str, duration_secs: float, **details: str | int) -> None:
        if event != _COMPILED or self._told or threading.get_ident() != self._thread:
            return
        hit, self._hit = self._hit, False
        if details.get("fun_name") == _STEP:
            self._told = True
            if hit:
                _log.info("The training step was loaded in %.1f s, not compiled.", duration_secs)
            else:
                _log.warning("The training step was compiled: %s", why_not(self._kept, self._run))


def why_not(kept: list[KeptProgram], run: Run) -> str:
    """Returns the differences between a run and the most similar kept program, in words."""
    devices = jax.devices()
    here = KeptProgram(
        file="",
        topology="",
        kind=devices[0].device_kind,
        devices=len(devices),
        mesh=_filled(run.config.mesh or {}, len(devices)),
        examples=run.batch_size,
        seconds=0.0,
        versions=versions(),
    )
    told = min((differences(each, here) for each in kept), key=len, default=["no program is kept"])
    return f"{'; '.join(told)}." if told else _OTHER


def differences(kept: KeptProgram, here: KeptProgram) -> list[str]:
    """Returns the properties in which a run differs from a kept program, in words."""
    pairs = [(name, getattr(kept, name), getattr(here, name)) for name in ("kind", "devices", "mesh", "examples")]
    pairs += [(name, kept.versions.get(name), here.versions.get(name)) for name in {**kept.versions, **here.versions}]
    return [f"{name}: {planned} in the plan, {found} here" for name, planned, found in pairs if planned != found]


def _filled(mesh: Mapping[str, int], devices: int) -> dict[str, int]:
    """Returns the sizes of a mesh, with the remaining devices instead of -1."""
    rest = devices // math.prod(size for size in mesh.values() if size > 0)
    return {axis: size if size > 0 else rest for axis, size in mesh.items()}
