"""Traces and JSON logs of training and of a server are collected in memory: `nox -s telemetry`."""

import io
import json
import logging

import numpy as np
import optax
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import estimator_core as ec
import estimator_hooks as eh
from estimator_exporters.serving.observing import Observing
from estimator_exporters.serving.telemetry import log_as_json, traced
from plugins.exporters.tests.live_server import echo, running


@pytest.fixture
def collected():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def model_fn(features, labels, mode):
    weight = ec.get_variable("weight", (), lambda key, shape, dtype: np.ones(shape, dtype))
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions=weight * features["x"])
    return ec.EstimatorSpec(mode, loss=(weight * features["x"]).sum(), train_op=optax.sgd(0.0))


def estimator(tmp_path):
    return ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(tmp_path), tf_random_seed=1))


def batches():
    return [{"x": np.ones(4, np.float32)}] * 6


def test_a_training_is_a_span_with_spans_of_its_steps(collected, tmp_path):
    provider, exporter = collected
    estimator(tmp_path).train(batches, steps=6, hooks=[eh.TraceHook(every_n_steps=2, provider=provider)])
    spans = exporter.get_finished_spans()
    (call,) = [span for span in spans if span.name == "train"]
    steps = [span for span in spans if span.name == "steps"]
    assert call.attributes["estimator.model_dir"] == str(tmp_path)
    assert (call.attributes["estimator.first_step"], call.attributes["estimator.last_step"]) == (0, 6)
    assert [span.attributes["estimator.last_step"] for span in steps] == [1, 3, 5, 6]
    assert [span.attributes["estimator.first_step"] for span in steps[1:]] == [
        span.attributes["estimator.last_step"] for span in steps[:-1]
    ]
    assert {span.parent.span_id for span in steps} == {call.context.span_id}
    assert all(span.attributes["estimator.loss"] == 4.0 for span in steps)
    assert call.status.status_code is StatusCode.UNSET


def test_a_training_that_fails_ends_its_span_as_an_error(collected, tmp_path):
    provider, exporter = collected

    class Fails(ec.Hook):
        def after_step(self, run, step, out):
            raise ValueError("broken")

    with pytest.raises(Exception, match="broken"):
        estimator(tmp_path).train(batches, steps=6, hooks=[eh.TraceHook(provider=provider), Fails()])
    (call,) = [span for span in exporter.get_finished_spans() if span.name == "train"]
    assert call.status.status_code is StatusCode.ERROR


def test_steps_before_an_early_end_have_a_span_and_a_prediction_is_traced(collected, tmp_path):
    provider, exporter = collected
    trained = estimator(tmp_path)
    trained.train(lambda: batches()[:4], hooks=[eh.TraceHook(every_n_steps=5, provider=provider)])
    last = [span for span in exporter.get_finished_spans() if span.name == "steps"][-1]
    assert (last.attributes["estimator.first_step"], last.attributes["estimator.last_step"]) == (1, 4)
    assert "estimator.loss" not in last.attributes
    exporter.clear()
    assert len(list(trained.predict(batches, hooks=[eh.TraceHook(every_n_steps=2, provider=provider)]))) == 24
    names = [span.name for span in exporter.get_finished_spans()]
    assert names == ["steps"] * (len(names) - 1) + ["infer"]


def test_log_lines_of_a_training_are_json_and_end_with_it(tmp_path):
    stream, log = io.StringIO(), logging.getLogger("estimator_core")
    before = list(logging.getLogger().handlers)

    class Says(ec.Hook):
        def begin(self, run):
            log.warning('a line with "quotes"\nand an end')

    estimator(tmp_path).train(batches, steps=2, hooks=[eh.JsonLogHook(stream), Says()])
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    (found,) = [line for line in lines if "quotes" in line["message"]]
    assert found["level"] == "WARNING"
    assert (found["logger"], found["mode"], found["model_dir"]) == ("estimator_core", "train", str(tmp_path))
    assert found["time"]
    assert logging.getLogger().handlers == before


def test_requests_are_spans_below_those_of_their_clients(collected):
    provider, exporter = collected
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
    with running({"echo": {"1": echo("float32")}}, observing=Observing(tracing=traced(provider))) as server:
        assert server.request("POST", "/v2/models/echo/infer", body, {"traceparent": parent})[0] == 200
        assert server.request("POST", "/v2/models/echo/infer", {"inputs": []})[0] == 400
    first, second = exporter.get_finished_spans()
    assert (first.name, first.attributes["http.response.status_code"]) == ("infer echo", 200)
    assert format(first.context.trace_id, "032x") == "0af7651916cd43dd8448eb211c80319c"
    assert format(first.parent.span_id, "016x") == "b7ad6b7169203331"
    assert (second.parent, second.attributes["http.response.status_code"]) == (None, 400)


def test_log_lines_of_a_server_are_json():
    stream, root = io.StringIO(), logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        log_as_json(stream)
        try:
            raise ValueError("broken")
        except ValueError:
            logging.getLogger("estimator_exporters").exception("A request failed")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    (line,) = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (line["level"], line["logger"], line["message"]) == ("ERROR", "estimator_exporters", "A request failed")
    assert "ValueError: broken" in line["exc_info"]
