"""The slice this machine belongs to, as Cloud TPU, GKE and JobSet tell it."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from estimator_core.errors import ArgumentError

COORDINATOR_PORT = 8476
_METADATA = "http://metadata.google.internal/computeMetadata/v1/instance/attributes/"


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A slice of a pod, or several slices.

    Attributes:
        accelerator: for example "v5litepod-16"; "" where it is not told.
        worker: the index of this machine in its slice.
        hostnames: addresses of the machines of its slice, by index.
        slice_index, slice_count: of a job over several slices; 0 of 1 otherwise.
        coordinator: `host:port` of the first process of all.
    """

    accelerator: str
    worker: int
    hostnames: tuple[str, ...]
    slice_index: int
    slice_count: int
    coordinator: str

    @property
    def process_count(self) -> int:
        """Machines of all slices; there is one process a machine."""
        return len(self.hostnames) * self.slice_count

    @property
    def process_index(self) -> int:
        """The index of this process among all."""
        return self.slice_index * len(self.hostnames) + self.worker


def find_pod(environment: Mapping[str, str], metadata: Callable[[str], str | None]) -> Pod | None:
    """The pod of this machine; None where it is alone or not told.

    Args:
        environment: `TPU_WORKER_ID`, `TPU_WORKER_HOSTNAMES` and `MEGASCALE_*`, as GKE and JobSet set them.
        metadata: the value of an attribute of the machine, None where there is none; asked where the environment
            tells nothing, as on Cloud TPU VMs.

    Raises:
        ArgumentError: what is told does not fit together.

    Example:
        >>> told = {"TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "a,b"}
        >>> pod = find_pod(told, lambda name: None)
        >>> pod.process_index, pod.process_count, pod.coordinator
        (1, 2, 'a:8476')
    """
    worker = environment.get("TPU_WORKER_ID") or metadata("agent-worker-number")
    hostnames = _hostnames(environment, metadata)
    if worker is None or not hostnames:
        return None
    accelerator = environment.get("TPU_ACCELERATOR_TYPE") or metadata("accelerator-type") or ""
    slice_count = _number(environment, "MEGASCALE_NUM_SLICES", 1)
    slice_index = _number(environment, "MEGASCALE_SLICE_ID", 0)
    if not worker.isdigit() or not int(worker) < len(hostnames):
        raise ArgumentError(
            f"TPU_WORKER_ID is {worker!r}, but TPU_WORKER_HOSTNAMES names {len(hostnames)} machines: it must be an "
            f"index below {len(hostnames)}."
        )
    if not slice_index < slice_count:
        raise ArgumentError(f"MEGASCALE_SLICE_ID is {slice_index}, but MEGASCALE_NUM_SLICES is {slice_count}.")
    first = environment.get("MEGASCALE_COORDINATOR_ADDRESS", "").partition(":")[0] or hostnames[0]
    if slice_count > 1 and "MEGASCALE_COORDINATOR_ADDRESS" not in environment:
        raise ArgumentError("A job over several slices needs MEGASCALE_COORDINATOR_ADDRESS.")
    return Pod(
        accelerator=accelerator,
        worker=int(worker),
        hostnames=hostnames,
        slice_index=slice_index,
        slice_count=slice_count,
        coordinator=f"{first}:{COORDINATOR_PORT}",
    )


def machine_attribute(name: str) -> str | None:
    """An attribute of this machine from the metadata server of Google Cloud; None where there is none."""
    request = urllib.request.Request(_METADATA + name, headers={"Metadata-Flavor": "Google"})
    try:
        with urllib.request.urlopen(request, timeout=2) as reply:
            return reply.read().decode()
    except (urllib.error.URLError, OSError):
        return None


def _hostnames(environment: Mapping[str, str], metadata: Callable[[str], str | None]) -> tuple[str, ...]:
    told = environment.get("TPU_WORKER_HOSTNAMES")
    if told:
        return tuple(name.strip() for name in told.split(",") if name.strip())
    endpoints = metadata("worker-network-endpoints")  # "name:port:address,..."
    return tuple(part.split(":")[-1] for part in endpoints.split(",")) if endpoints else ()


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, str(default))
    if not text.isdigit():
        raise ArgumentError(f"{name} must be a number, given: {text!r}.")
    return int(text)
