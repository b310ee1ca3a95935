"""Telemetry of a run: traces with OpenTelemetry, and log lines as JSON (extra telemetry)."""

from estimator_hooks.telemetry.json_logs import JsonLogHook
from estimator_hooks.telemetry.traces import TraceHook

__all__ = ["JsonLogHook", "TraceHook"]
