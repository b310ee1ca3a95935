"""Which run a process belongs to, as its environment says."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

SECRET, RUN, ATTEMPT = "ESTIMATOR_RUN_SECRET", "ESTIMATOR_RUN_ID", "ESTIMATOR_ATTEMPT"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A process as one of a run.

    Attributes:
        run: the name of the run.
        attempt: how often it was started again.
        who: host and process id, for messages.
        secret: what only processes of the run have; None: none was handed out.
    """

    run: str
    attempt: str
    who: str
    secret: bytes | None = field(repr=False)

    @property
    def base(self) -> str:
        """Where the keys of the run are."""
        return f"est/{quote(self.run, safe='')}/{quote(self.attempt, safe='')}"


def identity_of(environ: Mapping[str, str]) -> Identity:
    """The identity of this process.

    Example:
        >>> identity_of({"ESTIMATOR_RUN_ID": "a/b", "SLURM_RESTART_COUNT": "2"}).base
        'est/a%2Fb/2'
    """
    secret = environ.get(SECRET)
    return Identity(
        run=environ.get(RUN) or environ.get("SLURM_JOB_ID") or "run",
        attempt=environ.get(ATTEMPT) or environ.get("SLURM_RESTART_COUNT") or "0",
        who=f"{socket.gethostname()}, pid {os.getpid()}",
        secret=secret.encode() if secret else None,
    )
