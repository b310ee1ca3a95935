"""Makes the modules of this folder importable, and defines fixtures that send SIGTERM late."""

import contextlib
import signal
import sys
from pathlib import Path

import pytest

from estimator_core import Estimator
from estimator_core.hooks import Hook

sys.path.insert(0, str(Path(__file__).parent))


class _StopsAtTheEnd(Hook):
    """Sends SIGTERM after training has ended by itself."""

    def end(self, run):
        signal.raise_signal(signal.SIGTERM)


@pytest.fixture
def stopped_late():
    """`with stopped_late(step) as trained` stops the training to this step at its end. `trained` lists the steps."""

    @contextlib.contextmanager
    def stopped(at):
        trained, train = [], Estimator.train

        def late(self, input_fn, hooks=None, max_steps=None):
            trained.append(max_steps)
            more = [_StopsAtTheEnd()] if max_steps == at else []
            return train(self, input_fn, hooks=[*(hooks or ()), *more], max_steps=max_steps)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Estimator, "train", late)
            yield trained

    return stopped


@pytest.fixture
def stopped_in_evaluations():
    """`with stopped_in_evaluations() as evaluated` sends SIGTERM in the first evaluation.

    `evaluated` lists the model_dirs.
    """

    @contextlib.contextmanager
    def stopped():
        evaluated, evaluate = [], Estimator.evaluate

        def interrupted(self, *args, **kwargs):
            evaluated.append(Path(self.model_dir).name)
            if len(evaluated) == 1:
                signal.raise_signal(signal.SIGTERM)
            return evaluate(self, *args, **kwargs)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Estimator, "evaluate", interrupted)
            yield evaluated

    return stopped
