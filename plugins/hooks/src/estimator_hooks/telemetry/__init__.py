"""What a run tells others of itself: traces by OpenTelemetry, log lines as JSON (extra telemetry)."""

from estimator_hooks.telemetry.json_logs import JsonLogHook
from estimator_hooks.telemetry.traces import TraceHook

__all__ = ["JsonLogHook", "TraceHook"]
