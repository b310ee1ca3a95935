"""Hooks, listeners and exporters of this framework that record each call, like those of tf_tracers.py."""

import estimator_core as ec
from estimator_core import builtin_hooks

RAISED = {"ValueError": ValueError, "StopIteration": StopIteration}


class _Tracing:
    def __init__(self, spec, trace):
        self._spec, self._trace, self._counts = spec, trace, {}

    def _note(self, phase, step=None, request_stop=None):
        self._counts[phase] = count = self._counts.get(phase, 0) + 1
        at = "" if step is None else f"({step})"
        self._trace.append(f"{self._spec['name']}.{phase}{at}")
        if self._spec.get("raise_in") == phase and count == self._spec.get("raise_at", 1):
            raise RAISED[self._spec.get("raises", "ValueError")](f"raised in {phase} of {self._spec['name']}")
        if request_stop and self._spec.get("stop_in") == phase and count == self._spec.get("stop_at", 1):
            request_stop("asked by a scenario")
        return count


class TracingHook(_Tracing, ec.Hook):
    """Records its calls under the names that tf.estimator uses."""

    def begin(self, run):
        self._note("begin")

    def after_create(self, run):
        self._note("after_create_session", run.step)

    def before_step(self, run, step):
        self._note("before_run", request_stop=run.request_stop)

    def after_step(self, run, step, out):
        self._note("after_run", request_stop=run.request_stop)

    def end(self, run):
        self._note("end", run.step)


class TracingListener(_Tracing, ec.CheckpointListener):
    def begin(self, run):
        self._note("begin")

    def before_save(self, run, step):
        self._note("before_save", step)

    def after_save(self, run, step, checkpoint):
        return self._note("after_save", step) == self._spec.get("stop_at_save") or None

    def end(self, run, step):
        self._note("end", step)


class TracingExporter:
    def __init__(self, spec, trace):
        self._spec, self._trace, self._exports = spec, trace, 0

    @property
    def name(self):
        return self._spec["name"]

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        step = eval_result["global_step"]
        if self._spec.get("final_only") and not is_the_final_export:
            return None
        folder = "/".join(export_path.rstrip("/").split("/")[-2:])
        self._trace.append(f"{self.name}.export({step}, final={is_the_final_export}, {folder})")
        self._exports += 1
        if self._spec.get("raise_in") == "export" and self._exports == self._spec.get("raise_at", 1):
            raise ValueError(f"raised in export of {self.name}")
        return f"{self.name}@{step}"


def known_hook(spec, trace):
    """Returns the class of this framework that a scenario's ``{"hook": ...}`` names, and records its actions."""
    arguments = {key: value for key, value in spec.items() if key != "hook"}
    if spec["hook"] == "LoggingTensorHook":
        arguments["tensors"] = dict.fromkeys(spec["tensors"], "loss")
        arguments["formatter"] = lambda values: trace.append(f"log({', '.join(values)})") or ""
    if spec["hook"] in ("StepCounterHook", "SummarySaverHook"):
        arguments["summary_writer"] = _TracingWriter(trace, spec["hook"])
    return getattr(builtin_hooks, spec["hook"])(**arguments)


class _TracingWriter:
    """Stands in for an event file, and records the steps at which a hook writes."""

    def __init__(self, trace, name):
        self._trace, self._name = trace, name

    def scalar(self, tag, value, step):
        note = f"{self._name}.write({step})"
        if self._trace[-1] != note:  # several tags of one step count as one write
            self._trace.append(note)

    def flush(self):
        pass

    def close(self):
        pass
