"""The run to which a process belongs, according to its environment."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

SECRET, RUN, ATTEMPT = "ESTIMATOR_RUN_SECRET", "ESTIMATOR_RUN_ID", "ESTIMATOR_ATTEMPT"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The identity of a process within a run.

    Attributes:
        run: the name of the run.
        attempt: the number of the attempt, as the environment names it.
        who: the host and the process id, for messages.
        secret: the secret that only processes of the run have. None if the launcher did not set one.
    """

    run: str
    attempt: str
    who: str
    secret: bytes | None = field(repr=False)

    @property
    def base(self) -> str:
        """The prefix of the keys of the run."""
        return f"est/{quote(self.run, safe='')}/{quote(self.attempt, safe='')}"


def identity_of(environ: Mapping[str, str]) -> Identity:
    """Returns the identity of this process.

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
