"""A plan whose first process kills itself once in the middle of its work."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from estimator_exporters.scoring.plan import Plan

BEFORE = 3


@dataclass(frozen=True, kw_only=True)
class KillingPlan(Plan):
    """A plan that kills its process once. The file `marker` records that this has happened."""

    marker: str

    def opened(self):
        signature, calls = super().opened(), []

        def called(**arrays):
            calls.append(1)
            if len(calls) > BEFORE:
                try:
                    Path(self.marker).touch(exist_ok=False)
                except FileExistsError:
                    return signature(**arrays)
                os.kill(os.getpid(), signal.SIGKILL)
            return signature(**arrays)

        return called


def killing(engine, marker):
    """The engine with a worker that dies."""

    def killed(plan, signature, patterns):
        fields = {name: getattr(plan, name) for name in ("export", "signature", "reading")}
        return engine(KillingPlan(**fields, marker=str(marker)), signature, patterns)

    return killed
