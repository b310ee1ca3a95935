"""A hand-written loop over a Parquet file: `python _score_by_hand.py EXPORT INPUT OUTPUT ROWS_AT_A_TIME`."""

import json
import sys
from pathlib import Path

import jax
import numpy as np
import pyarrow as pa
from jax import export
from pyarrow import parquet
from safetensors.numpy import load_file


def main(directory, source, target, rows):
    directory = Path(directory)
    manifest = json.loads((directory / "manifest.json").read_text())
    signature = manifest["signatures"]["serving_default"]
    program = (directory / signature["program"][-1]["path"]).read_bytes()
    run = jax.jit(export.deserialize(bytearray(program)).call)
    variables = jax.device_put(load_file(directory / manifest["variables"]))
    names = list(signature["inputs"])
    writer = None
    for batch in parquet.ParquetFile(source).iter_batches(rows, columns=names):
        outputs = run(variables, {name: batch.column(name).to_numpy() for name in names})
        table = pa.table({name: np.asarray(value)[:, 0] for name, value in outputs.items()})
        writer = writer or parquet.ParquetWriter(target, table.schema)
        writer.write_table(table)
    writer.close()


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
