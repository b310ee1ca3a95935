"""Tests of the REST form of TensorFlow Serving: requests and answers are as in its documentation."""

import base64
import json

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.export import Feature
from estimator_exporters.bundle.loaded import Signature
from estimator_exporters.serving.models import ServedModel
from plugins.exporters.tests.live_server import SIZES, echo, function_model, running

FLOAT, TEXT = Feature((None,)), Feature((None,), "string")


def half_plus_three():
    return function_model(lambda arrays: {"y": arrays["x"] / 2 + 3}, {"x": FLOAT}, {"y": FLOAT})


def several():
    """The example of the documentation: three named inputs, which are returned."""
    inputs = {"tag": TEXT, "signal": Feature((None, 5), "int32"), "sensor": Feature((None, 2, 2))}
    return function_model(lambda arrays: dict(arrays), inputs, inputs)


def classifier():
    def run(arrays):
        scores = np.stack([arrays["age"], 1 - arrays["age"]], axis=1).astype(np.float32)
        return {"scores": scores, "classes": np.array([[b"old", b"young"]] * len(scores), object)}

    outputs = {"scores": Feature((None, 2)), "classes": Feature((None, 2), "string")}
    signature = Signature(
        name="serving_default", method="classify", inputs={"age": FLOAT, "name": TEXT}, outputs=outputs, run=run
    )
    return ServedModel(signature, SIZES)


def best_class():
    """Returns the best class and the scores of all, as BertClassifier does."""
    outputs = {"scores": Feature((None, 2)), "classes": Feature((None, 1), "string")}
    answer = {"scores": np.array([[0.25, 0.75]], np.float32), "classes": np.array([[b"young"]], object)}
    return function_model(lambda arrays: {name: answer[name] for name in outputs}, {"x": FLOAT}, outputs)


def flat_scores():
    outputs = {"scores": Feature((None,))}
    return function_model(lambda arrays: {"scores": arrays["x"]}, {"x": FLOAT}, outputs)


def regressor():
    outputs = {"outputs": Feature((None, 1))}
    return function_model(lambda arrays: {"outputs": arrays["x"][:, None] * 2}, {"x": FLOAT}, outputs)


def records():
    """Takes serialized tf.Examples. Returns the sum of the feature x and the text of the feature t."""

    def run(arrays):
        parsed = [ec.export.example_class().FromString(one) for one in arrays["examples"].tolist()]
        assert "int64_list" not in {one.features.feature["t"].WhichOneof("kind") for one in parsed}
        totals = [[sum(one.features.feature["x"].float_list.value)] for one in parsed]
        return {"outputs": np.array(totals, np.float32)}

    return function_model(run, {"examples": TEXT}, {"outputs": Feature((None, 1))})


@pytest.fixture(scope="module")
def server():
    image = function_model(lambda arrays: {"image_bytes": arrays["image"]}, {"image": TEXT}, {"image_bytes": TEXT})
    models = {
        "half_plus_three": {"123": half_plus_three(), "124": half_plus_three()},
        "half_plus_three:double": {"124": regressor()},
        "several": {"1": several()},
        "classifier": {"1": classifier()},
        "best": {"1": best_class()},
        "flat": {"1": flat_scores()},
        "regressor": {"1": regressor()},
        "records": {"1": records()},
        "image": {"1": image},
        "pairs": {"1": echo("float32")},
    }
    with running(models) as found:
        yield found


def ask(server, path, content):
    status, _, answer = server.request("POST", f"/v1/models/{path}", content)
    return status, answer


INSTANCES = [
    {"tag": "foo", "signal": [1, 2, 3, 4, 5], "sensor": [[1, 2], [3, 4]]},
    {"tag": "bar", "signal": [3, 4, 1, 2, 5], "sensor": [[4, 5], [6, 8]]},
]
COLUMNS = {key: [one[key] for one in INSTANCES] for key in INSTANCES[0]}


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("half_plus_three:predict", {"instances": [1.0, 2.0, 5.0]}, {"predictions": [3.5, 4.0, 5.5]}),
        ("half_plus_three/versions/123:predict", {"instances": [1.0]}, {"predictions": [3.5]}),
        ("half_plus_three:predict", {"inputs": [1.0, 2.0]}, {"outputs": [3.5, 4.0]}),
        ("half_plus_three:predict", {"inputs": {"x": [1.0]}}, {"outputs": [3.5]}),
        ("half_plus_three:predict", {"instances": [{"x": 1}, {"x": 2}]}, {"predictions": [3.5, 4.0]}),
        ("half_plus_three:predict", {"signature_name": "serving_default", "instances": [1]}, {"predictions": [3.5]}),
        ("half_plus_three:predict", {"signature_name": "double", "instances": [2]}, {"predictions": [[4.0]]}),
        ("half_plus_three:regress", {"signature_name": "double", "examples": [{"x": 2.0}]}, {"results": [4.0]}),
        ("several:predict", {"instances": INSTANCES}, {"predictions": INSTANCES}),
        ("several:predict", {"inputs": COLUMNS}, {"outputs": COLUMNS}),
        ("pairs:predict", {"instances": [[1, 2], [3, 4]]}, {"predictions": [[1.0, 2.0], [3.0, 4.0]]}),
        ("regressor:regress", {"examples": [{"x": 1.0}, {"x": [2.0]}]}, {"results": [2.0, 4.0]}),
        (
            "classifier:classify",
            {"context": {"name": "a"}, "examples": [{"age": 0.25}, {"age": 1}]},
            {"results": [[["old", 0.25], ["young", 0.75]], [["old", 1.0], ["young", 0.0]]]},
        ),
        (
            "image:predict",
            {"instances": [{"b64": base64.b64encode(b"\xff\x00").decode()}, "text"]},
            {"predictions": [{"b64": "/wA="}, {"b64": "dGV4dA=="}]},
        ),
    ],
)
def test_requests_of_the_documentation(server, path, content, expected):
    assert ask(server, path, content) == (200, expected)


@pytest.mark.plugins  # tf.Example is parsed by estimator-inputs
def test_examples_become_records(server):
    content = {"context": {"t": "all"}, "examples": [{"x": [1.5, 2]}, {"x": 1.0, "z": {"b64": "/wA="}, "n": 3}]}
    assert ask(server, "records:regress", content) == (200, {"results": [3.5, 1.0]})


@pytest.mark.plugins
def test_a_feature_without_values_is_missing(server):
    content = {"examples": [{"x": [], "t": []}, {"x": 1.0, "t": "a"}]}
    assert ask(server, "records:regress", content) == (200, {"results": [0.0, 1.0]})


@pytest.mark.plugins
def test_a_finite_number_does_not_become_infinite_in_a_record(server):
    status, answer = ask(server, "records:regress", {"examples": [{"x": 1.0}, {"x": [2, -1e39]}]})
    assert (status, answer) == (400, {"error": "feature 'x' holds -1e+39, which is infinite as float32"})
    status, answer = ask(server, "records:regress", {"examples": [{"x": [1.0, 10**400]}]})
    assert (status, answer) == (400, {"error": f"feature 'x': '[1.0, 1{'0' * 33}' cannot be a value of a tf.Example"})
    infinite = b'{"examples": [{"x": [-Infinity, 1e38]}]}'
    status, _, answer = server.request("POST", "/v1/models/records:regress", infinite)
    assert (status, answer) == (200, {"results": ["-Infinity"]})


def test_literals_are_read_and_strings_are_written(server):
    """TensorFlow Serving reads the literal `NaN`. It also writes it, which is not valid JSON."""
    status, _, answer = server.request("POST", "/v1/models/pairs:predict", b'{"instances": [[NaN, -Infinity]]}')
    assert (status, answer) == (200, {"predictions": [["NaN", "-Infinity"]]})


@pytest.mark.parametrize(
    ("path", "content", "status", "message"),
    [
        ("none:predict", {"instances": [1]}, 404, "there is no model 'none'"),
        ("half_plus_three/versions/9:predict", {"instances": [1]}, 404, "has no version '9'"),
        ("half_plus_three:predict", {"signature_name": "z", "instances": [1]}, 404, "no model 'half_plus_three:z'"),
        ("half_plus_three:predict", {}, 400, "either 'instances' or 'inputs'"),
        ("half_plus_three:predict", {"instances": [1], "inputs": [1]}, 400, "either 'instances' or 'inputs'"),
        ("half_plus_three:predict", {"instances": []}, 400, "at least one value"),
        ("half_plus_three:predict", {"instances": 3}, 400, "at least one value"),
        ("half_plus_three:predict", {"instances": ["a"]}, 400, "'a' is not of type FP32"),
        ("half_plus_three:predict", {"instances": [[1]]}, 400, "must have shape"),
        ("half_plus_three:predict", {"inputs": {"z": [1]}}, 400, "unknown inputs"),
        ("half_plus_three:predict", [], 400, "must be a JSON object"),
        ("several:predict", {"instances": [1]}, 400, "the values must be named"),
        ("several:predict", {"instances": [INSTANCES[0], {"tag": "a"}]}, 400, "instance 1 must be an object"),
        ("pairs:predict", {"instances": [[1, 2], [3]]}, 400, "nested evenly"),
        ("pairs:predict", {"instances": [[1, 2], 3]}, 400, "nested evenly"),
        ("image:predict", {"instances": [{"b64": "?"}]}, 400, "is not base64"),
        ("image:predict", {"instances": ["\ud800"]}, 400, "half a surrogate pair"),
        ("half_plus_three:classify", {"examples": [{"x": 1}]}, 400, "classify needs scores or classes"),
        ("best:classify", {"examples": [{"x": 1}]}, 400, "classify needs one column for each class; use :predict"),
        ("flat:classify", {"examples": [{"x": 1}]}, 400, "classify needs one column for each class; use :predict"),
        ("regressor:regress", {"examples": [{}]}, 400, "example 0 has no feature 'x'"),
        ("regressor:regress", {"examples": []}, 400, "at least one object"),
    ],
)
def test_what_is_wrong_is_said(server, path, content, status, message):
    found, answer = ask(server, path, content)
    assert (found, message in answer["error"]) == (status, True), answer


def test_status_and_metadata(server):
    fine = {"error_code": "OK", "error_message": ""}
    status, _, found = server.request("GET", "/v1/models/half_plus_three")
    expected = [{"version": version, "state": "AVAILABLE", "status": fine} for version in ("123", "124")]
    assert (status, found) == (200, {"model_version_status": expected})
    found = server.request("GET", "/v1/models/half_plus_three/versions/123")[2]
    assert found == {"model_version_status": expected[:1]}
    assert server.request("GET", "/v1/models/half_plus_three/versions/9")[0] == 404
    assert server.request("GET", "/v1/models/none")[0] == 404
    status, _, found = server.request("GET", "/v1/models/half_plus_three/metadata")
    assert (status, found["model_spec"]["version"]) == (200, "124")
    signatures = found["metadata"]["signature_def"]["signature_def"]
    assert sorted(signatures) == ["double", "serving_default"]
    assert signatures["serving_default"]["inputs"]["x"] == {
        "dtype": "DT_FLOAT",
        "tensor_shape": {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False},
        "name": "x:0",
    }
    assert server.request("GET", "/v1/models/classifier/metadata")[2]["metadata"]["signature_def"]["signature_def"][
        "serving_default"
    ]["method_name"] == ("tensorflow/serving/classify")


def test_a_get_of_a_signature_is_answered_as_that_of_a_model(server):
    for place in ("", "/metadata"):
        status, _, found = server.request("GET", f"/v1/models/half_plus_three:double{place}")
        assert status == 200, found
    assert [*found["metadata"]["signature_def"]["signature_def"]] == ["double"]
    assert server.request("GET", "/v1/models/half_plus_three:predict")[0] == 404


def test_long_answers_are_whole(server):
    rows = [[float(number), 0.5] for number in range(9000)]
    assert ask(server, "pairs:predict", {"instances": rows}) == (200, {"predictions": rows})
    assert json.dumps(rows) == json.dumps(ask(server, "pairs:predict", {"inputs": rows})[1]["outputs"])


def test_a_signature_that_only_an_older_version_has_hides_no_newer_version():
    default = "serving_default"
    with running({"m:also": {"1": echo("float32")}, "m": {"1": regressor(), "2": regressor()}}) as server:
        found = server.request("GET", "/v1/models/m")[2]
        assert [one["version"] for one in found["model_version_status"]] == ["1", "2"]
        for place, version, signatures in (("", "2", {default}), ("/versions/1", "1", {default, "also"})):
            found = server.request("GET", f"/v1/models/m{place}/metadata")[2]
            assert found["model_spec"]["version"] == version
            assert found["metadata"]["signature_def"]["signature_def"].keys() == signatures
        assert server.request("GET", "/v1/models/m/versions/2")[0] == 200
        assert server.request("GET", "/v1/models/m/versions/3")[0] == 404
