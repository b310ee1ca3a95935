"""What the calls of an Estimator need of it."""

from __future__ import annotations

from typing import Any, Protocol

from estimator_core.config import RunConfig


class Owner(Protocol):
    """The Estimator, as its calls see it: they lie below it and cannot import it. Hooks get the Estimator itself."""

    @property
    def config(self) -> RunConfig:
        """Its configuration."""
        ...

    @property
    def params(self) -> Any:
        """A copy of its params."""
        ...

    @property
    def model_dir(self) -> str:
        """Directory of checkpoints, events, evaluations and exports."""
        ...

    def eval_dir(self, name: str | None = None) -> str:
        """The directory of an evaluation's results."""
        ...

    def latest_checkpoint(self) -> str | None:
        """The newest checkpoint of model_dir."""
        ...
