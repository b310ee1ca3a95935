"""Exports from the time when `parse_example` was a component of the core are read with the one of this package."""

import json
from pathlib import Path

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.plugins import default_plugins
from estimator_inputs import ParseExample
from plugins.inputs.tests.frozen.make import records

FROZEN = Path(__file__).with_name("frozen")
TRANSFORMS = FROZEN / "parse_example_1" / "transforms" / "input"
Y = json.loads((FROZEN / "parse_example_1.json").read_text())


def test_its_transform_is_found_by_its_name():
    plugins = default_plugins()
    (parse,) = ec.inputs.load_transforms(TRANSFORMS, lambda name: plugins.get("transform", name))
    assert isinstance(parse, ParseExample)
    found = parse.apply({"examples": records()})
    assert {name: array.tolist() for name, array in found.items()} == {"x": [[1.0, 2.0], [0.5, -1.0]], "age": [3, -1]}


@pytest.mark.plugins  # the format is part of estimator-exporters
def test_the_export_gives_what_it_gave():
    """The export was written with jax 0.10.2 and estimator-core 0.1.0, once, by `frozen/make.py`."""
    raw = ec.export.load(FROZEN / "parse_example_1").raw_signatures["serving_default"]
    np.testing.assert_allclose(raw(examples=records())["y"], Y, rtol=0, atol=1e-6)
