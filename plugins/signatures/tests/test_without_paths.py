"""Inside `without_paths`, lowered programs name no source files."""

import threading

import jax
import pytest

from estimator_signatures.without_paths import without_paths

LIMIT = jax.config.jax_traceback_in_locations_limit


def lowered():
    return jax.jit(lambda x: x * 2).lower(1.0).as_text(debug_info=True)


def test_no_source_is_named_inside_and_every_one_outside():
    assert __file__ in lowered()
    with without_paths():
        inside = lowered()
    assert ".py" not in inside
    assert "mul" in inside
    assert __file__ in lowered()


def test_the_setting_comes_back_after_an_error():
    with pytest.raises(ZeroDivisionError), without_paths():
        raise ZeroDivisionError
    assert jax.config.jax_traceback_in_locations_limit == LIMIT


def test_it_comes_back_after_two_threads():
    entered, may_end = threading.Event(), threading.Event()

    def first():
        with without_paths():
            entered.set()
            may_end.wait(10)

    def second():
        entered.wait(10)
        threading.Timer(0.05, may_end.set).start()
        with without_paths():
            pass

    threads = [threading.Thread(target=target) for target in (second, first)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert jax.config.jax_traceback_in_locations_limit == LIMIT
