"""The parts of the ported paper.py that are compared: `estimator migrate prove old_paper.py:NAME new_paper.py:NAME`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "ported"))
import paper


def _parts(name, model_dir):
    estimator = paper.estimators(model_dir)[name]
    return {"estimator": estimator, "train_input_fn": paper.train_input, "eval_input_fn": paper.eval_input}


def custom(model_dir):
    return _parts("custom", model_dir)


def canned(model_dir):
    return _parts("canned", model_dir)


def another_rate(model_dir):
    return {**_parts("custom", model_dir), "estimator": paper.estimators(model_dir, rate=0.2)["custom"]}


def _canned(model_dir, **arguments):
    tabular = paper.tabular
    columns = [tabular.numeric_column(m) for m in paper.MEASURES]
    classifier = tabular.DNNClassifier([12, 12], columns, model_dir, paper.KINDS, **arguments)
    return {**_parts("canned", model_dir), "estimator": classifier}


def canned_as_it_was(model_dir):
    """Uses the defaults of TensorFlow 2 where the program relied on those of TensorFlow 1."""
    return _canned(model_dir)


def canned_with_its_reduction(model_dir):
    """Uses the program's value for one of the two defaults that differ."""
    return _canned(model_dir, loss_reduction="sum")
