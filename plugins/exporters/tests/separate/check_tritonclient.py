"""Sends requests to a running server with tritonclient[http]: `python check_tritonclient.py HOST:PORT`.

The server serves the models `echo_FP32`, `echo_INT64`, ...: each returns its input "x", of shape [-1, 2], as its output
"y". The script runs in a separate environment, because tritonclient needs other versions of numpy than jax.
"""

import sys

import ml_dtypes
import numpy as np
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

TYPES = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
    "BYTES": np.object_,
    "BF16": ml_dtypes.bfloat16,
}


def check(client, name, binary):
    dtype = TYPES[name]
    array = np.array([[b"a", "ä".encode()]], dtype) if name == "BYTES" else np.array([[0, 1], [1, 0]]).astype(dtype)
    sent = http.InferInput("x", array.shape, name)
    sent.set_data_from_numpy(array, binary_data=binary)
    wanted = http.InferRequestedOutput("y", binary_data=binary)
    found = client.infer(f"echo_{name}", [sent], outputs=[wanted], request_id="7").as_numpy("y")
    if name == "BYTES" and not binary:
        found = np.array(
            [[item if isinstance(item, bytes) else item.encode() for item in row] for row in found], object
        )
    np.testing.assert_array_equal(found, array, err_msg=f"{name}, binary={binary}")


def refusal(ask):
    try:
        ask()
    except InferenceServerException as error:
        return str(error)
    return "it was answered"


def main(address):
    client = http.InferenceServerClient(address, concurrency=4)
    assert client.is_server_live()
    assert client.is_server_ready()
    assert "binary_tensor_data" in client.get_server_metadata()["extensions"]
    names = {model["name"] for model in client.get_model_repository_index()}
    assert names == {f"echo_{name}" for name in TYPES}, names
    checked = 0
    for name in TYPES:
        assert client.is_model_ready(f"echo_{name}")
        metadata = client.get_model_metadata(f"echo_{name}")
        assert metadata["inputs"] == [{"name": "x", "datatype": name, "shape": [-1, 2]}], metadata
        assert client.get_model_config(f"echo_{name}")["max_batch_size"] > 0
        for binary in (True, False):
            if name == "BF16" and not binary:
                continue
            check(client, name, binary)
            checked += 1
    assert "there is no model 'none'" in refusal(lambda: client.get_model_metadata("none"))
    several = [client.async_infer("echo_FP32", [input_of(row)]) for row in range(32)]
    for row, one in enumerate(several):
        assert one.get_result().as_numpy("y").tolist() == [[row, row]]
    (statistics,) = client.get_inference_statistics("echo_FP32")["model_stats"]
    assert statistics["inference_stats"]["success"]["count"] == len(several) + 2, statistics
    assert len(client.get_inference_statistics()["model_stats"]) == len(TYPES)
    print(f"{checked} forms of {len(TYPES)} datatypes, {len(several)} requests at a time: all well")


def input_of(row):
    sent = http.InferInput("x", [1, 2], "FP32")
    sent.set_data_from_numpy(np.full((1, 2), row, np.float32))
    return sent


if __name__ == "__main__":
    main(sys.argv[1])
