"""Reports the ends and restarts of the pods of a job, in lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from estimator_launchers.outcome import RESUMABLE, in_words

_INDEX, _ATTEMPT = "batch.kubernetes.io/job-completion-index", "jobset.sigs.k8s.io/restart-attempt"
#: The statuses of pods that end because of other pods or a stop. They are reported only if no pod ended before.
_FOLLOWS = (RESUMABLE, 134, 143)
_NO_REASONS = ("Error", "Completed", None)


class Told:
    """Remembers what was reported about the pods of a job.

    Args:
        clock: the function that returns the time in seconds.

    Example:
        >>> ended = {"name": "main", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
        >>> pod = {
        ...     "metadata": {"name": "train-trainers-0-1-x", "labels": {_INDEX: "1"}},
        ...     "spec": {"nodeName": "node-7"},
        ...     "status": {"containerStatuses": [ended]},
        ... }
        >>> list(Told().new([pod]))
        ['process 1 on node-7 has ended: ended by SIGKILL (OOMKilled)']
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said = set[str]()
        self._attempt = 0
        self._lost_at: float | None = None

    def new(self, pods: Sequence[dict[str, Any]]) -> Iterator[str]:
        """Yields the new lines.

        Args:
            pods: the pods of the job, as the cluster lists them. A label has the number of the attempt.
        """
        begun = [int(pod["metadata"].get("labels", {}).get(_ATTEMPT, 0)) for pod in pods if _phase(pod) == "Running"]
        if begun and max(begun) > self._attempt:
            self._attempt = max(begun)
            passed = "" if self._lost_at is None else f", {self._clock() - self._lost_at:.1f} s after the loss"
            self._lost_at = None
            yield f"starting again (attempt {self._attempt + 1}){passed}"
        for pod in pods:
            status, why = _end(pod)
            if not status or _name(pod) in self._said:
                continue
            self._said.add(_name(pod))
            if self._lost_at is None or status not in _FOLLOWS:
                yield f"{_place(pod)} has ended: {in_words(status)}{why}"
            if self._lost_at is None:
                self._lost_at = self._clock()


def ends(pods: Sequence[dict[str, Any]]) -> str:
    """Returns how the pods of a failed job ended, in words. "" if the cluster has removed them."""
    ended = [(pod, *_end(pod)) for pod in pods]
    return "; ".join(f"{_place(pod)}: {in_words(status)}{why}" for pod, status, why in ended if status)


def _name(pod: dict[str, Any]) -> str:
    return pod["metadata"]["name"]


def _phase(pod: dict[str, Any]) -> str:
    return pod.get("status", {}).get("phase", "")


def _place(pod: dict[str, Any]) -> str:
    node = pod.get("spec", {}).get("nodeName")
    return f"process {pod['metadata'].get('labels', {}).get(_INDEX, '?')}{f' on {node}' if node else ''}"


def _end(pod: dict[str, Any]) -> tuple[int, str]:
    """Returns the exit status of a pod (0 while it runs), and the reason according to the cluster."""
    status = pod.get("status", {})
    disrupted = [one for one in status.get("conditions", []) if one["type"] == "DisruptionTarget"]
    reasons = [one.get("message") or one.get("reason") for one in disrupted if one.get("status") == "True"]
    for container in status.get("containerStatuses", []):
        ended = container.get("state", {}).get("terminated")
        if ended is not None:
            reasons += [ended["reason"]] if ended.get("reason") not in _NO_REASONS else []
            return int(ended["exitCode"]), f" ({'; '.join(filter(None, reasons))})" if any(reasons) else ""
    return 0, ""
