"""Writes one export after another until it is killed: `python export_forever.py DIRECTORY`."""

import sys

import numpy as np

from estimator_core._export.directories import collect_garbage, new_export
from estimator_core.export import ExportRequest, Feature, SignatureSpec
from estimator_exporters.stablehlo import StableHLOFormat


def scores(variables, inputs):
    return {"scores": inputs["x"] @ variables["kernel"]}


SIGNATURE = SignatureSpec(
    name="serving_default",
    method="predict",
    inputs={"x": Feature((None, 64))},
    outputs={"scores": Feature((None, 64))},
    function=scores,
)


def main(directory):
    number = 0
    while True:
        number += 1
        kernel = np.full((64, 64), number, np.float32)
        request = ExportRequest(
            signatures={"serving_default": SIGNATURE}, variables={"kernel": kernel}, global_step=number
        )
        with new_export(directory) as (temporary, _):
            StableHLOFormat().write(request, temporary)
        collect_garbage(directory, 3)
        print(number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
