"""pyarrow is imported only when files of rows are read."""

import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
import estimator_core as ec
receiver = ec.export.build_parsing_serving_input_receiver_fn({"age": ec.export.FixedLenFeature((), "int64")})()
record = ec.export.example_class()()
record.features.feature["age"].int64_list.value.append(3)
(parse,) = receiver.transforms
parse.apply({"examples": np.array([record.SerializeToString()], object)})
ec.inputs.pandas_input_fn
print(sorted({"pyarrow", "pandas", "tensorflow", "google_crc32c"} & set(sys.modules)))
"""


def test_tf_examples_and_the_function_for_frames_import_nothing_more():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
