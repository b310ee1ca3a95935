"""Hooks, listeners and exporters that note each call, and stop or raise where a scenario tells them to."""

import tensorflow as tf


def _act(spec, phase, count, request_stop):
    """Raises or requests a stop at the ``count``-th call of ``phase`` if ``spec`` says so."""
    if spec.get("raise_in") == phase and count == spec.get("raise_at", 1):
        raise RAISED[spec.get("raises", "ValueError")](f"raised in {phase} of {spec['name']}")
    if request_stop and spec.get("stop_in") == phase and count == spec.get("stop_at", 1):
        request_stop()


RAISED = {
    "ValueError": ValueError,
    "StopIteration": StopIteration,
    "OutOfRangeError": lambda message: tf.errors.OutOfRangeError(None, None, message),
    "KeyboardInterrupt": KeyboardInterrupt,
}


class _Tracing:
    def __init__(self, spec, trace):
        self._spec, self._trace, self._counts = spec, trace, {}

    def _note(self, phase, step=None, request_stop=None):
        self._counts[phase] = self._counts.get(phase, 0) + 1
        at = "" if step is None else f"({step})"
        self._trace.append(f"{self._spec['name']}.{phase}{at}")
        _act(self._spec, phase, self._counts[phase], request_stop)
        return self._counts[phase]


class TracingHook(_Tracing, tf.estimator.SessionRunHook):
    def begin(self):
        self._note("begin")

    def after_create_session(self, session, coord):
        self._note("after_create_session", session.run(tf.compat.v1.train.get_global_step(session.graph)))

    def before_run(self, run_context):
        self._note("before_run", request_stop=run_context.request_stop)

    def after_run(self, run_context, run_values):
        self._note("after_run", request_stop=run_context.request_stop)

    def end(self, session):
        self._note("end", session.run(tf.compat.v1.train.get_global_step(session.graph)))


class TracingListener(_Tracing, tf.estimator.CheckpointSaverListener):
    def begin(self):
        self._note("begin")

    def before_save(self, session, global_step_value):
        self._note("before_save", global_step_value)

    def after_save(self, session, global_step_value):
        return self._note("after_save", global_step_value) == self._spec.get("stop_at_save") or None

    def end(self, session, global_step_value):
        self._note("end", global_step_value)


class TracingExporter(_Tracing, tf.estimator.Exporter):
    @property
    def name(self):
        return self._spec["name"]

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        step = eval_result["global_step"]
        if self._spec.get("final_only") and not is_the_final_export:
            return None
        folder = export_path.rstrip("/").split("/")
        self._trace.append(f"{self.name}.export({step}, final={is_the_final_export}, {'/'.join(folder[-2:])})")
        self._counts["export"] = self._counts.get("export", 0) + 1
        _act(self._spec, "export", self._counts["export"], None)
        return f"{self.name}@{step}"


def known_hook(spec, trace, model_dir):
    """One of tf.estimator's own hooks by class name; the tensor to log is named ``batch_loss``."""
    arguments = {key: value for key, value in spec.items() if key != "hook"}
    if spec["hook"] == "LoggingTensorHook":
        arguments["tensors"] = {name: f"{name}:0" for name in spec["tensors"]}
        arguments["formatter"] = lambda values: trace.append(f"log({', '.join(values)})") or ""
    if spec["hook"] == "NanTensorHook":
        arguments["loss_tensor"] = "batch_loss:0"
    if spec["hook"] == "SummarySaverHook":
        arguments["summary_op"] = tf.compat.v1.summary.scalar("saved_by_hook", 1.0, collections=[])
    if spec["hook"] == "StepCounterHook" or spec["hook"] == "SummarySaverHook":
        arguments["summary_writer"] = _TracingWriter(trace, spec["hook"])
    if spec["hook"] == "FinalOpsHook":
        arguments["final_ops"] = tf.compat.v1.train.get_global_step()
    if spec["hook"] == "CheckpointSaverHook":
        arguments["checkpoint_dir"] = model_dir
    return getattr(tf.estimator, spec["hook"])(**arguments)


class _TracingWriter:
    """Stands for a summary writer: notes the steps at which a hook writes."""

    def __init__(self, trace, name):
        self._trace, self._name = trace, name

    def add_summary(self, summary, step):
        self._trace.append(f"{self._name}.write({step})")

    def add_session_log(self, session_log, step):
        self._trace.append(f"{self._name}.session({step})")

    def flush(self):
        pass
