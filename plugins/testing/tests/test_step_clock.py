"""Tests of the clock of driven runs."""

import threading
import time

from estimator_testing.step_clock import StepClock


def test_sleep_of_the_test_moves_it_and_that_of_a_thread_does_not():
    """An earlier test may leave such a thread: that of a progress bar stays for a second."""
    over, slept = threading.Event(), threading.Event()

    def sleeps():
        while not over.is_set():
            time.sleep(0.001)
            slept.set()

    thread = threading.Thread(target=sleeps)
    clock = StepClock(monotonic=10.0)
    with clock.shown():
        thread.start()
        assert slept.wait(20)
        time.sleep(3.0)
        shown = time.monotonic()
        over.set()
        thread.join()
    assert shown == 13.0
