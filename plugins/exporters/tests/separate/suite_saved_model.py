"""The `saved_model` format, in an environment with TensorFlow."""

import pytest

from estimator_core.errors import ExportError
from estimator_core.export import ExportRequest, Feature, SignatureSpec
from estimator_core.testing import ExportFormatSuite
from estimator_exporters.saved_model import SavedModelFormat


class TestSavedModel(ExportFormatSuite):
    def make(self):
        return SavedModelFormat()


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("user age", {}, "'user age' cannot be an argument of a TensorFlow signature"),
        ("x", {"fixed_batch_sizes": (1, 2)}, "one program for all batch sizes"),
    ],
)
def test_what_cannot_be_converted_is_said_before_anything_is_written(tmp_path, name, more, message):
    signature = SignatureSpec(
        name="serving_default",
        method="predict",
        inputs={name: Feature((None, 2))},
        outputs={"y": Feature((None, 2))},
        function=lambda variables, inputs: {"y": inputs[name]},
    )
    request = ExportRequest(signatures={"serving_default": signature}, variables={}, **more)
    with pytest.raises(ExportError, match=message):
        SavedModelFormat().write(request, tmp_path)
    assert list(tmp_path.iterdir()) == []
