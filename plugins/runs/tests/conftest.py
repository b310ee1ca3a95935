"""The modules beside the tests can be imported; a stop that comes too late for a training."""

import contextlib
import signal
import sys
from pathlib import Path

import pytest

from estimator_core import Estimator
from estimator_core.hooks import Hook

sys.path.insert(0, str(Path(__file__).parent))


class _StopsAtTheEnd(Hook):
    """SIGTERM once training has ended by itself."""

    def end(self, run):
        signal.raise_signal(signal.SIGTERM)


@pytest.fixture
def stopped_late():
    """`with stopped_late(step) as trained`: a stop at the end of a training up to this step; the steps of trainings."""

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
    """`with stopped_in_evaluations() as evaluated`: SIGTERM within the first evaluation; the model_dirs of all."""

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
