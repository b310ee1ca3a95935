"""Makes the export that later versions must be able to read: `python make.py`, run once.

It was run when `parse_example` was a component of the core. An export names a transform, not the package that provides
it.
"""

import json
from pathlib import Path

import jax
import numpy as np

import estimator_core as ec

HERE = Path(__file__).parent


def records():
    """Two serialized tf.Examples. The second lacks the feature that has a default."""
    first, second = (ec.export.example_class()() for _ in range(2))
    first.features.feature["x"].float_list.value.extend([1.0, 2.0])
    first.features.feature["age"].int64_list.value.append(3)
    second.features.feature["x"].float_list.value.extend([0.5, -1.0])
    return np.array([one.SerializeToString(deterministic=True) for one in (first, second)], object)


def main():
    from estimator_exporters.stablehlo import StableHLOFormat

    receiver = ec.export.build_parsing_serving_input_receiver_fn(
        {"x": ec.export.FixedLenFeature((2,)), "age": ec.export.FixedLenFeature((), "int64", default_value=-1)}
    )()
    signature = ec.export.SignatureSpec(
        name="serving_default",
        method="predict",
        inputs=receiver.features,
        outputs={"y": ec.export.Feature((None,))},
        function=lambda variables, inputs: {"y": inputs["x"] @ variables["kernel"] + inputs["age"]},
    )
    request = ec.export.ExportRequest(
        signatures={"serving_default": signature},
        variables={"kernel": np.array([10, 1], np.float32)},
        input_transforms=receiver.transforms,
        receiver=receiver.receiver_tensors,
        provenance={"versions": {"estimator-core": ec.__version__, "jax": jax.__version__}},
    )
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")  # no paths of this machine in the program
    directory = HERE / "parse_example_1"
    directory.mkdir()
    StableHLOFormat().write(request, directory)
    found = StableHLOFormat().load(directory).raw_signatures["serving_default"](examples=records())
    (HERE / "parse_example_1.json").write_text(json.dumps(found["y"].tolist()) + "\n")


if __name__ == "__main__":
    main()
