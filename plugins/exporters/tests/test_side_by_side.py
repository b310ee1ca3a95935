"""Tests of reading ahead and of writing in the background: order, errors, bounds, and no work after the end."""

import threading

import numpy as np
import pytest

from estimator_exporters.scoring.io_threads import ahead, behind

X = {"x": np.zeros(1)}


def counted(count, made, fault=None):
    """Yields numbers. Notes each before it is yielded, and the end as None."""
    try:
        for number in range(count):
            made.append(number)
            yield number
        if fault is not None:
            raise fault
    finally:
        made.append(None)


def test_items_come_in_order_and_an_error_where_its_item_would():
    found, made = [], []
    with pytest.raises(OSError, match="torn"):
        found.extend(ahead(counted(100, made, OSError("torn"))))
    assert found == list(range(100))


def test_at_most_so_many_are_made_before_they_are_asked_for():
    made = []
    items = ahead(counted(100, made), most=3)
    seen = []
    for number in items:
        seen.append(len(made) - number)
        if number == 50:
            break
    assert max(seen) <= 5
    items.close()
    assert made[-1] is None, "the generator is closed"
    assert len(made) < 60
    assert not [one for one in threading.enumerate() if one.name.startswith("estimator-predict")]


def test_the_next_item_is_made_while_one_is_used():
    begun = threading.Event()

    def two():
        yield 1
        begun.set()
        yield 2

    items = ahead(two())
    assert next(items) == 1
    assert begun.wait(60), "the second item is made in another thread"
    assert list(items) == [2]


def test_calls_run_in_order_in_one_thread_and_have_ended_with_the_block():
    found, threads = [], set()

    def add(columns):
        threads.add(threading.current_thread().name)
        found.append(columns["x"][0])

    with behind(add) as later:
        for number in range(50):
            later({"x": np.full(1, number)})
    assert found == list(range(50))
    assert threads == {"estimator-predict-write_0"}


def test_a_caller_waits_where_writing_is_slower():
    done = threading.Semaphore(0)

    def add(columns):
        done.acquire()

    with behind(add, most=2) as later:
        later(X)
        later(X)
        late = threading.Thread(target=later, args=(X,))
        late.start()
        late.join(0.2)
        assert late.is_alive(), "a third call would be one too many"
        done.release()
        late.join(60)
        assert not late.is_alive()
        done.release(2)


@pytest.mark.parametrize("calls", [1, 5])
def test_an_error_of_writing_ends_the_block(calls):
    def add(columns):
        raise OSError("No space left on device")

    def run():
        with behind(add) as later:
            for _ in range(calls):
                later(X)

    with pytest.raises(OSError, match="No space left"):
        run()
    assert not [one for one in threading.enumerate() if one.name.startswith("estimator-predict")]


def test_an_error_of_the_block_is_the_one_that_is_told():
    def run():
        with behind(lambda columns: None) as later:
            later(X)
            raise ValueError("bad row")

    with pytest.raises(ValueError, match="bad row"):
        run()
