"""Tests of the functions that MLflow calls: tables and arrays through a signature, without MLflow itself."""

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_exporters.mlflow_flavor.loader import _load_pyfunc

pytestmark = pytest.mark.libraries


def test_a_table_with_lists_is_scored(export):
    import pandas as pd

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = _load_pyfunc(export).predict(pd.DataFrame({"x": x.tolist(), "more": [1, 2]}))
    expected = ec.export.load(export).signatures["serving_default"](x=x)
    assert found["class_ids"].tolist() == expected["class_ids"].tolist()
    np.testing.assert_array_equal(np.stack(found["logits"].tolist()), expected["logits"])


@pytest.mark.parametrize("rows", [[[1.0, 2.0, 3.0], [1.0]], [[1.0, 2.0, 3.0], None], [[1.0, [2.0], 3.0], [1.0]]])
def test_a_column_of_lists_of_different_lengths_is_refused_by_name(export, rows):
    import pandas as pd

    with pytest.raises(ArgumentError, match=r"input 'x': its rows are not arrays of one shape .*same length"):
        _load_pyfunc(export).predict(pd.DataFrame({"x": rows}))
