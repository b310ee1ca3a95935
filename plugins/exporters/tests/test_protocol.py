"""Tests of requests and responses of the protocol: every datatype, both forms, and arbitrary bytes."""

import json

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from estimator_exporters.serving.datatypes import NUMPY, to_bytes
from estimator_exporters.serving.protocol import HEADER_LENGTH, build_response, parse_request
from estimator_exporters.serving.refusals import BadRequestError

NUMBERS = sorted(NUMPY.keys() - {"BYTES", "BF16"})


def array_of(name):
    if name == "BYTES":
        return np.array([[b"a", b""], [b"\xc3\xa4", b"long" * 9]], object)
    return np.array([[0, 1], [1, 0]]).astype(NUMPY[name])


def binary_request(*arrays, **more):
    """A request with the inputs x0, x1, ... in binary form."""
    names = {str(dtype): name for name, dtype in NUMPY.items()}
    chunks = [to_bytes(array) for array in arrays]
    inputs = [
        {
            "name": f"x{number}",
            "datatype": names[str(array.dtype)],
            "shape": list(array.shape),
            "parameters": {"binary_data_size": len(chunk)},
        }
        for number, (array, chunk) in enumerate(zip(arrays, chunks, strict=True))
    ]
    header = json.dumps({"inputs": inputs, **more}).encode()
    return header + b"".join(chunks), str(len(header))


def json_request(name, array):
    data = [item.decode() for item in array.reshape(-1)] if name == "BYTES" else array.tolist()
    tensor = {"name": "x0", "datatype": name, "shape": list(array.shape), "data": data}
    return json.dumps({"id": "7", "inputs": [tensor]}).encode()


@pytest.mark.parametrize("name", sorted(NUMPY))
def test_binary_there_and_back(name):
    array = array_of(name)
    request = parse_request(*binary_request(array, parameters={"binary_data_output": True}))
    np.testing.assert_array_equal(request.inputs["x0"], array)
    assert request.inputs["x0"].dtype == array.dtype
    body, headers = build_response(request, "m", "1", {"x0": request.inputs["x0"]})
    again = json.loads(body[: int(headers[HEADER_LENGTH])])["outputs"][0]
    assert again["datatype"] == name
    assert body[int(headers[HEADER_LENGTH]) :] == to_bytes(array)


@pytest.mark.parametrize("name", sorted(NUMPY.keys() - {"BF16"}))
def test_json_there_and_back(name):
    array = array_of(name)
    request = parse_request(json_request(name, array), None)
    np.testing.assert_array_equal(request.inputs["x0"], array)
    body, _ = build_response(request, "m", "1", {"y": request.inputs["x0"]})
    answer = json.loads(body)
    assert answer["id"] == "7"
    tensor = answer["outputs"][0]
    assert (tensor["datatype"], tensor["shape"]) == (name, [2, 2])
    again = {"name": "x0", "datatype": name, "shape": tensor["shape"], "data": tensor["data"]}
    np.testing.assert_array_equal(parse_request(json.dumps({"inputs": [again]}).encode(), None).inputs["x0"], array)


def test_bfloat16_has_no_form_in_json():
    with pytest.raises(BadRequestError, match="BF16 has no form in JSON"):
        parse_request(json_request("BF16", np.zeros((1, 1))), None)
    request = parse_request(*binary_request(np.zeros((1,), ml_dtypes.bfloat16)))
    with pytest.raises(BadRequestError, match="ask for it in binary"):
        build_response(request, "m", "1", {"y": request.inputs["x0"]})


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(NUMBERS).flatmap(
            lambda name: hnp.arrays(NUMPY[name], hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
        ),
        min_size=1,
        max_size=4,
    )
)
def test_several_binary_inputs_lie_one_after_another(arrays):
    request = parse_request(*binary_request(*arrays))
    for number, array in enumerate(arrays):
        np.testing.assert_array_equal(request.inputs[f"x{number}"], array)


X = {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "must be a JSON object"),
        ({}, "inputs must be a list"),
        ({"inputs": [3]}, "object with a name"),
        ({"inputs": [X, X]}, "given twice"),
        ({"inputs": [{**X, "datatype": "FLOAT"}]}, "datatype must be one of"),
        ({"inputs": [{**X, "datatype": ["FP32"]}]}, "datatype must be one of"),
        ({"inputs": [{**X, "shape": [-1, 2]}]}, "shape must be a list"),
        ({"inputs": [{**X, "shape": [True, 2]}]}, "shape must be a list"),
        ({"inputs": [{**X, "shape": [10**12, 2]}]}, "shape must be a list"),
        ({"inputs": [{**X, "shape": [3, 2]}]}, "needs 6 values, but the request has 2"),
        ({"inputs": [{**X, "data": [1, "a"]}]}, "'a' is not of type FP32"),
        ({"inputs": [{**X, "data": [1, None]}]}, "'None' is not of type FP32"),
        ({"inputs": [{**X, "data": [[1], 2]}]}, "nested evenly"),
        ({"inputs": [{**X, "shape": [4], "data": [[1], [2, 3], [], [4]]}]}, "nested evenly"),
        ({"inputs": [{**X, "shape": [2, 3], "data": [[1, 2], [3, 4], [5, 6]]}]}, r"nested as its shape \[2, 3\]"),
        ({"inputs": [{**X, "data": {}}]}, "data must be a list"),
        ({"inputs": [{**X, "datatype": "INT8", "data": [1, 200]}]}, "outside the range of INT8"),
        ({"inputs": [{**X, "datatype": "INT8", "data": [1, 2.0]}]}, "'2.0' is not of type INT8"),
        ({"inputs": [{**X, "datatype": "BOOL", "data": [1, True]}]}, "'1' is not of type BOOL"),
        ({"inputs": [{k: v for k, v in X.items() if k != "data"}]}, "neither data nor"),
        ({"inputs": [{**X, "parameters": {"binary_data_size": 8}}]}, "both data and"),
        ({"inputs": [{**X, "parameters": []}]}, "parameters must be an object"),
        ({"inputs": [{**X, "parameters": {"shared_memory_region": "r"}}]}, "shared memory"),
        ({"inputs": [X], "id": 3}, "id must be a string"),
        ({"inputs": [X], "outputs": [{}]}, "output must be an object"),
        ({"inputs": [X], "outputs": [{"name": "y", "parameters": {"classification": 1}}]}, "classification is not"),
        ({"inputs": [X], "parameters": {"binary_data_output": 1}}, "true or false"),
    ],
)
def test_what_is_wrong_is_said(content, message):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    with pytest.raises(BadRequestError, match=message):
        parse_request(body, None)


@pytest.mark.parametrize("length", ["", "-1", "x", "9" * 30, "٣", "100000"])
def test_a_wrong_header_length_is_refused(length):
    with pytest.raises(BadRequestError, match="must be a number up to"):
        parse_request(b"{}", length)


@pytest.mark.parametrize(("cut", "message"), [(-1, "are left"), (1, "belong to no input")])
def test_truncated_and_overlong_binary(cut, message):
    body, length = binary_request(np.zeros((2, 2), np.float32))
    with pytest.raises(BadRequestError, match=message):
        parse_request(body[:cut] if cut < 0 else body + b"x", length)


@pytest.mark.parametrize("content", [b"\x01\0\0\0", b"\xff\xff\xff\xffab", b"\x01\0\0\0ab", b"\x01\0"])
def test_strings_whose_lengths_do_not_fit(content):
    tensor = {"name": "x", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": len(content)}}
    header = json.dumps({"inputs": [tensor]}).encode()
    with pytest.raises(BadRequestError, match="are not 1 strings"):
        parse_request(header + content, str(len(header)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["name", "datatype", "shape", "data", "parameters"])


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(FIELDS, JSON, max_size=2), st.binary(max_size=20), st.none() | st.integers(-1, 300))
def test_any_request_is_parsed_or_refused(change, extra, length):
    body = json.dumps({"inputs": [{**X, **change}]}).encode() + extra
    try:
        request = parse_request(body, None if length is None else str(length))
    except BadRequestError:
        return
    assert all(isinstance(array, np.ndarray) for array in request.inputs.values())
