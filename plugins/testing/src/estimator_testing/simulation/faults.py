"""The faults that can happen at a call of a storage, and the calls at which they can happen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: The calls that change something.
CHANGES = ("put_new", "put", "put_stream", "delete")
CALLS = (*CHANGES, "get", "get_ranges", "list", "now")
#: The number of further calls of all processes after which a late request arrives.
LATE = 4
#: The seconds for which a process is frozen. In this time the others make a whole run, or outlast every lease.
FROZEN, FROZEN_LONG = 90.0, 100_000.0
#: The duration of a throttled call, in seconds.
THROTTLED = 120.0


@dataclass(frozen=True, order=True)
class Fault:
    """A fault at a call of a process.

    Args:
        kind: the kind, one of `KINDS`.
        process: the name of a process of the scenario.
        call: the number of its call to a storage, from 1, over all its lives.
    """

    kind: str
    process: str
    call: int


#: The effect of each kind, and the calls at which it makes a difference.
KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "answer_lost": ("carried out, but the caller does not learn of it", CHANGES),
    "request_lost": ("not carried out, but the caller does not learn of it", CHANGES),
    "request_late": ("the caller does not learn of it; carried out a few calls later", CHANGES),
    "request_last": ("the caller does not learn of it; carried out at the very end", CHANGES),
    "doubled": ("carried out at once, and again a few calls later", CHANGES),
    "doubled_last": ("carried out at once, and again at the very end", CHANGES),
    "io_error": ("EIO: nothing is done", CALLS),
    "full": ("ENOSPC: nothing is written", ("put_new", "put", "put_stream")),
    "throttled": ("carried out after two minutes", CALLS),
    "kill_before": ("the process is killed; the call does not happen", CHANGES),
    "kill_after": ("the process is killed once the call is carried out", CHANGES),
    "power_before": ("all processes die and data that is not durable is lost; the call does not happen", CHANGES),
    "power_after": ("all processes die and data that is not durable is lost, after the call", CHANGES),
    "freeze": ("the process is frozen before the call, for as long as a run of the others", CALLS),
    "freeze_long": ("the process is frozen before the call, for longer than any lease", CALLS),
    "turn": ("the others continue first", CALLS),
    "clock_back": ("the clock of the process's machine is set back by an hour", ("put_new", "list")),
    "removed": ("the root is removed before the call", CALLS),
    "replaced": ("the root is removed before the call, and a stranger begins another model_dir there", CALLS),
    "stale_list": ("the list is that of ten changes ago: no storage may do that", ("list",)),
}
#: Faults that a correct storage never has.
OUTSIDE_CONTRACT = ("stale_list",)
#: Actions of users on a directory in use.
BY_HAND = ("removed", "replaced")
#: Faults that programs can meet on any storage that keeps the contract.
WITHIN_CONTRACT = tuple(kind for kind in KINDS if kind not in (*OUTSIDE_CONTRACT, *BY_HAND))
