"""Tests of trap 13: the prefetch thread ends with its consumer, with the input, and with the interpreter."""

import gc
import subprocess
import sys
import textwrap
import threading
import time
import traceback
import weakref

import numpy as np
import pytest

from estimator_core._inputs import open_input
from estimator_core._inputs.arrays import numpy_input_fn
from estimator_core._inputs.prefetch import prefetch
from estimator_core.errors import ArgumentError


def endless():
    i = 0
    while True:
        yield {"x": np.full((2, 1), i, np.float32)}
        i += 1


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "estimator-input"]


def wait_until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


@pytest.fixture(autouse=True)
def no_thread_left():
    yield
    assert wait_until(lambda: not threads())


@pytest.mark.parametrize("depth", [1, 2, 7])
def test_batches_come_in_order_placed_by_the_thread(depth):
    placing = set()

    def place(batch):
        placing.add(threading.current_thread().name)
        return batch._replace(labels=batch.size * 10)

    source = prefetch(
        open_input(numpy_input_fn(np.arange(50), batch_size=8, shuffle=False), mode="train"), place, depth=depth
    )
    assert not threads()
    batches = list(source)
    assert [batch.labels for batch in batches] == [80] * 6 + [20]
    assert placing == {"estimator-input"}
    assert source.position.exhausted
    assert next(source, None) is None
    source.close()


def test_at_most_depth_batches_are_drawn_ahead():
    drawn = []

    def counted():
        for batch in endless():
            drawn.append(1)
            yield batch

    source = prefetch(open_input(counted, mode="train"), lambda batch: batch, depth=3)
    next(source)
    assert wait_until(lambda: len(drawn) >= 4)
    time.sleep(0.05)
    # one used and three ahead; the source inspects its first batch at its start, and that is the first of these
    assert len(drawn) == 4
    source.close()


def test_the_position_is_that_of_the_last_batch_used_not_drawn():
    source = prefetch(open_input(endless, mode="train"), lambda batch: batch, depth=5)
    batch = next(source)
    assert source.position == batch.position
    assert batch.position.batches == 1
    source.close()


def test_close_stops_and_joins_the_thread_and_can_be_repeated():
    source = prefetch(open_input(endless, mode="train"), lambda batch: batch, depth=2)
    next(source)
    # a daemon thread inside JAX aborts the process when the interpreter exits
    assert [thread.daemon for thread in threads()] == [False]
    source.close()
    assert not threads()
    source.close()
    assert list(source) == []


def test_close_before_the_first_draw_starts_no_thread():
    source = prefetch(open_input(endless, mode="train"), lambda batch: batch, depth=2)
    source.close()
    assert not threads()


@pytest.mark.parametrize("where", ["input", "place"])
def test_an_error_in_the_thread_is_raised_here_with_its_own_traceback(where):
    def breaks_in_the_input():
        yield {"x": np.zeros(2)}
        raise RuntimeError("disk on fire")

    def breaks_in_place(batch):
        if where == "place" and batch.position.batches == 2:
            raise RuntimeError("disk on fire")
        return batch

    input_fn = breaks_in_the_input if where == "input" else endless
    source = prefetch(open_input(input_fn, mode="train"), breaks_in_place, depth=2)
    next(source)
    with pytest.raises(RuntimeError, match="disk on fire") as caught:
        next(source)
    assert f"breaks_in_{'the_input' if where == 'input' else 'place'}" in "".join(
        traceback.format_tb(caught.value.__traceback__)
    )
    assert next(source, None) is None
    source.close()


def test_a_dropped_consumer_ends_its_thread():
    source = prefetch(open_input(endless, mode="train"), lambda batch: batch, depth=2)
    next(source)
    gone = weakref.ref(source)
    del source
    gc.collect()
    assert gone() is None
    assert wait_until(lambda: not threads())


def test_an_abandoned_generator_that_holds_one_ends_its_thread():
    def predictions():
        source = prefetch(open_input(endless, mode="infer"), lambda batch: batch, depth=2)
        try:
            yield from source
        finally:
            source.close()

    generator = predictions()
    next(generator)
    assert threads()
    del generator
    gc.collect()
    assert not threads()


@pytest.mark.parametrize(
    ("ending", "pause"),
    [
        ("pass", 0.0),
        pytest.param("pass", 0.3, marks=pytest.mark.slow),
        ("raise SystemExit(0)", 0.3),
        pytest.param("kept = source; del source", 0.3, marks=pytest.mark.slow),
    ],
    ids=["while it draws", "while it waits for room", "by SystemExit", "with another reference"],
)
def test_a_process_that_forgets_to_close_ends_cleanly(ending, pause):
    code = f"""
        import time
        import numpy as np
        from estimator_core._inputs import open_input
        from estimator_core._inputs.prefetch import prefetch
        def endless():
            while True:
                yield {{"x": np.zeros((2, 1), np.float32)}}
        source = prefetch(open_input(endless, mode="train"), lambda batch: batch, depth=2)
        next(source)
        time.sleep({pause})
        {ending}
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], timeout=60, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_line_about_a_restored_position_comes_through():
    first = open_input(endless, mode="train")
    next(first)
    source = prefetch(open_input(endless, mode="train", position=first.position), lambda batch: batch, depth=2)
    assert source.restored is None
    assert next(source).features["x"][0, 0] == 1
    assert "1 batches were drawn and dropped" in source.restored
    source.close()


def test_a_depth_below_one_is_refused():
    with pytest.raises(ArgumentError, match="depth must be at least 1"):
        prefetch(open_input(endless, mode="train"), lambda batch: batch, depth=0)
