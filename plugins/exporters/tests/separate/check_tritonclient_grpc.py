"""Sends requests to a running server with tritonclient[grpc]: `python check_tritonclient_grpc.py HOST:PORT`.

The server is the one that `check_tritonclient.py` describes.
"""

import sys

import numpy as np
import tritonclient.grpc as grpc
from check_tritonclient import TYPES, refusal


def input_of(name, array):
    sent = grpc.InferInput("x", array.shape, name)
    sent.set_data_from_numpy(array)
    return sent


def check(client, name):
    dtype = TYPES[name]
    array = np.array([[b"a", "ä".encode()]], dtype) if name == "BYTES" else np.array([[0, 1], [1, 0]]).astype(dtype)
    asked = [grpc.InferRequestedOutput("y")]
    answer = client.infer(f"echo_{name}", [input_of(name, array)], outputs=asked, request_id="7")
    np.testing.assert_array_equal(answer.as_numpy("y"), array, err_msg=name)
    assert answer.get_response().id == "7"


def main(address):
    client = grpc.InferenceServerClient(address)
    assert client.is_server_live()
    assert client.is_server_ready()
    assert "statistics" in client.get_server_metadata().extensions
    for name in TYPES:
        assert client.is_model_ready(f"echo_{name}")
        metadata = client.get_model_metadata(f"echo_{name}", as_json=True)
        assert metadata["inputs"] == [{"name": "x", "datatype": name, "shape": ["-1", "2"]}], metadata
        check(client, name)
    assert "no model 'none'" in refusal(lambda: client.get_model_metadata("none"))
    wrong = np.zeros((1, 3), np.float32)
    assert "must have shape" in refusal(lambda: client.infer("echo_FP32", [input_of("FP32", wrong)]))
    answers = [client.infer("echo_FP32", [input_of("FP32", np.full((1, 2), row, np.float32))]) for row in range(32)]
    assert [answer.as_numpy("y").tolist() for answer in answers] == [[[row, row]] for row in range(32)]
    (statistics,) = client.get_inference_statistics("echo_FP32").model_stats
    assert statistics.inference_stats.success.count == len(answers) + 1, statistics
    assert len(client.get_inference_statistics().model_stats) == len(TYPES)
    print(f"{len(TYPES)} datatypes over gRPC: all well")


if __name__ == "__main__":
    main(sys.argv[1])
