"""The parts of the ported guide.py that are compared: `estimator migrate prove old_guide.py:NAME new_guide.py:NAME`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "ported"))
import guide


def _parts(name, model_dir):
    train, train_y = guide.make_passengers(1500, seed=31)
    test, test_y = guide.make_passengers(400, seed=32)
    wide, deep = guide.build_columns(train)
    return {
        "estimator": guide.build_estimators(wide, deep, model_dir, dropout=None)[name],
        "train_input_fn": guide.make_input_fn(train, train_y, shuffle=True),
        "eval_input_fn": guide.make_input_fn(test, test_y, epochs=1),
    }


def linear(model_dir):
    return _parts("linear", model_dir)


def deep(model_dir):
    return _parts("deep", model_dir)


def combined(model_dir):
    return _parts("combined", model_dir)


def keras(model_dir):
    train, train_y = guide.make_passengers(1500, seed=31)
    test, test_y = guide.make_passengers(400, seed=32)
    return {
        "estimator": guide.fc.model_to_estimator(guide.keras_model(dropout=0.0), model_dir=model_dir),
        "train_input_fn": guide.numbers_input(train, train_y, None),
        "eval_input_fn": guide.numbers_input(test, test_y, 1),
    }
