"""Tests of dynamic batching: every caller receives its own rows, and batches have few different sizes."""

import asyncio
import threading

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_exporters.serving.batching import BATCH_SIZES, Batcher


def double(arrays):
    return {"y": arrays["x"] * 2, "constant": np.arange(3)}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 11) | st.integers(120, 300), min_size=1, max_size=20))
def test_every_caller_gets_its_own_rows(sizes):
    seen = []

    async def main():
        batcher = Batcher(double, (1, 4, 8), ["y"], lambda run: seen.append((run.rows, run.size)))
        requests = [np.full((size, 2), number, np.float32) for number, size in enumerate(sizes)]
        results = await asyncio.gather(*(batcher({"x": x}) for x in requests))
        await batcher.close()
        return requests, results

    requests, results = asyncio.run(main())
    for x, result in zip(requests, results, strict=True):
        np.testing.assert_array_equal(result["y"], x * 2)
        assert result["constant"].tolist() == [0, 1, 2]
    assert {size for _, size in seen} <= {1, 4, 8}
    assert all(rows <= size for rows, size in seen)
    assert sum(rows for rows, _ in seen) == sum(sizes)


def held():
    """`double` as a slow device, with the event that it sets when it runs and the event that it waits for."""
    runs, may_end = threading.Event(), threading.Event()

    def slow(arrays):
        runs.set()
        assert may_end.wait(30)
        return double(arrays)

    return slow, runs, may_end


def test_what_waits_while_the_device_is_busy_runs_together():
    seen, (slow, first_runs, go_on) = [], held()

    async def main():
        batcher = Batcher(slow, (1, 8), ["y"], lambda run: seen.append((run.rows, run.size)))
        x = np.ones((1, 1), np.float32)
        first = asyncio.ensure_future(batcher({"x": x}))
        await asyncio.to_thread(first_runs.wait)
        others = [asyncio.ensure_future(batcher({"x": x})) for _ in range(6)]
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(first, *others)
        await batcher.close()

    asyncio.run(main())
    assert seen == [(1, 1), (6, 8)]


def test_what_nobody_waits_for_any_more_is_not_run():
    """Such are gRPC requests with an expired deadline.

    An overloaded server would run them before requests that still wait.
    """
    seen, (slow, first_runs, go_on) = [], held()

    async def main():
        batcher = Batcher(slow, (1, 4), ["y"], lambda run: seen.append((run.rows, run.size)))
        first = asyncio.ensure_future(batcher({"x": np.ones((1, 1), np.float32)}))
        await asyncio.to_thread(first_runs.wait)
        rows = [np.full((1, 1), number, np.float32) for number in range(6)]
        others = [asyncio.ensure_future(batcher({"x": x})) for x in [*rows, np.ones((9, 1), np.float32)]]
        await asyncio.sleep(0)
        for gone in (0, 1, 2, 6):  # the last request has three pieces
            others[gone].cancel()
        await asyncio.sleep(0)
        go_on.set()
        answers = await asyncio.gather(first, *others, return_exceptions=True)
        await batcher.close()
        return answers

    answers = asyncio.run(main())
    assert [isinstance(each, asyncio.CancelledError) for each in answers] == [False, *3 * [True], *3 * [False], True]
    assert [each["y"].item() for each in answers[4:7]] == [6, 8, 10]
    assert seen == [(1, 1), (3, 4)]


def test_an_error_reaches_its_callers_and_the_next_request_is_served():
    def fussy(arrays):
        if arrays["x"].max() > 1:
            raise ValueError("too large")
        return double(arrays)

    async def main():
        batcher = Batcher(fussy, (1,), ["y"])
        with pytest.raises(ValueError, match="too large"):
            await batcher({"x": np.full((1, 1), 2.0)})
        result = await batcher({"x": np.full((1, 1), 1.0)})
        await batcher.close()
        return result

    assert asyncio.run(main())["y"].tolist() == [[2.0]]


def test_closing_answers_what_waits():
    async def main():
        batcher = Batcher(double, (1,), ["y"])
        waiting = [asyncio.ensure_future(batcher({"x": np.full((1, 1), n, np.float32)})) for n in range(5)]
        await asyncio.sleep(0)
        await batcher.close()
        return [(await one)["y"].item() for one in waiting]

    assert asyncio.run(main()) == [0, 2, 4, 6, 8]


def test_a_request_that_comes_after_closing_is_answered_and_leaves_no_thread():
    async def main():
        batcher = Batcher(double, (1,), ["y"])
        await batcher({"x": np.ones((1, 1), np.float32)})
        await batcher.close()
        late = await batcher({"x": np.ones((1, 1), np.float32)})
        return late["y"].item()

    before = set(threading.enumerate())
    assert asyncio.run(main()) == 2
    started = set(threading.enumerate()) - before
    for thread in started:
        thread.join(30)
    assert not any(thread.is_alive() for thread in started)


def test_few_executables_however_requests_come():
    """jax compiles one executable per padded size, at most six by default."""
    traces = []

    def traced(arrays):
        traces.append(arrays["x"].shape)
        return {"y": arrays["x"] * 2}

    compiled = jax.jit(traced)

    async def main():
        batcher = Batcher(compiled, BATCH_SIZES, ["y"])
        batcher.warm_up(lambda size: {"x": np.zeros((size, 1), np.float32)})
        warm = len(traces)
        for rows in range(1, 70):
            await asyncio.gather(
                batcher({"x": np.ones((rows, 1), np.float32)}), batcher({"x": np.ones((1, 1), np.float32)})
            )
        await batcher.close()
        return warm

    assert asyncio.run(main()) == len(BATCH_SIZES) == len(traces) == 6


def test_warm_up_runs_every_size_once():
    seen = []
    Batcher(lambda arrays: seen.append(len(arrays["x"])) or double(arrays), (4, 1, 2), ["y"]).warm_up(
        lambda size: {"x": np.zeros((size, 1))}
    )
    assert seen == [1, 2, 4]
