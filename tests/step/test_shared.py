"""Tests of compiled programs that Estimators of one process share if, and only if, they trace to the same program."""

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.extend.core import Primitive

import estimator_core as ec
from estimator_core._model.shared_programs import SharedJit, forget_shared, program_key


@pytest.fixture(autouse=True)
def _nothing_is_shared_yet():
    forget_shared()


def key_of(function, *args):
    return program_key(jax.jit(function).trace(*args))


X = jnp.arange(3.0)
TABLE, OTHER = np.arange(5.0, dtype=np.float32), np.arange(1.0, 6.0, dtype=np.float32)


def with_dead_code(x, number=2.0):
    jnp.sin(x * number)
    return x + 1


@pytest.mark.parametrize(
    ("other", "args"),
    [
        (lambda x: x * 3, (X,)),
        (lambda x: x + 2, (X,)),
        (lambda x: 2 * x, (jnp.arange(4.0),)),
        (lambda x: x * 2, (X.astype(jnp.bfloat16),)),
        (lambda x: (x * 2, x), (X,)),
        (lambda x: jax.lax.cond(True, lambda: x * 2, lambda: x), (X,)),
    ],
    ids=["a number", "an operation", "a shape", "a dtype", "a result", "a branch"],
)
def test_what_computes_otherwise_has_another_key(other, args):
    assert key_of(lambda x: x * 2, X) == key_of(lambda y: y * 2, X) is not None
    assert key_of(other, *args) not in (None, key_of(lambda x: x * 2, X))


def test_operations_count():
    assert None is not key_of(jax.lax.sin, X) != key_of(jax.lax.cos, X)


def test_constants_count_at_any_depth():
    def inner(table):
        return lambda x: jax.lax.scan(lambda carry, row: (carry + row * table.sum(), None), x.sum(), x)[0]

    def taken(table):
        return lambda x: jax.jit(lambda index: jnp.asarray(table)[index])(x.astype(int))

    for made in (inner, taken):
        assert key_of(made(TABLE), X) == key_of(made(TABLE.copy()), X) != key_of(made(OTHER), X)


def test_keys_of_random_numbers_count():
    def drawn(seed):
        return lambda x: x + jax.random.normal(jax.random.key(seed), x.shape)

    assert key_of(drawn(1), X) == key_of(drawn(1), X) is not None
    assert key_of(drawn(1), X) != key_of(drawn(2), X)


def test_what_no_result_needs_does_not_count():
    assert key_of(with_dead_code, X) == key_of(lambda x: with_dead_code(x, 5.0), X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jax.pure_callback(lambda y: y, x, x),
        lambda x: (jax.debug.print("{}", x), x)[1],
        lambda x: x + jnp.asarray(np.zeros((1 << 20) + 1, np.float32))[:3],
    ],
    ids=["a callback", "a print", "a large constant"],
)
def test_what_cannot_be_compared_has_no_key(function):
    assert key_of(function, X) is None


def test_a_function_of_a_user_is_not_compared_by_its_name():
    named = Primitive("named")
    named.def_abstract_eval(lambda x, function: x)
    assert key_of(lambda x: named.bind(x, function=jax.lax.sort), X) is not None
    assert key_of(lambda x: named.bind(x, function=key_of), X) is None


def test_equal_functions_are_compiled_once(compiled):
    functions = [SharedJit(lambda x: x * 2) for _ in range(3)]
    assert [function(X).tolist() for function in functions] == [[0, 2, 4]] * 3
    assert len(compiled) == 1
    assert SharedJit(lambda x: x * 2, donate_argnums=0)(jnp.arange(3.0)).tolist() == [0, 2, 4]
    assert len(compiled) == 2


def test_other_shapes_are_served_and_in_time_left_to_jax():
    function = SharedJit(lambda x: x * 2)
    for size in [3, *range(20), 3]:
        assert function(jnp.ones(size)).tolist() == [2] * size
    assert function.compiled is None


def test_threads_share_while_others_are_forgotten(monkeypatch):
    monkeypatch.setattr("estimator_core._model.shared_programs._MOST", 1)

    def doubled_and_added(number):
        return SharedJit(lambda x: x * 2 + number)(X).tolist()

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(doubled_and_added, [0, 1, 2, 3] * 8))
    assert found == [[number, 2 + number, 4 + number] for number in [0, 1, 2, 3] * 8]


def test_the_first_of_a_long_loop_is_called_without_a_detour(compiled):
    first, second, third = (SharedJit(lambda x: x * 2) for _ in range(3))
    assert first.direct(X) is first._jit
    assert (compiled, second.direct(X), third.direct(X)) == (["jit__lambda"], second, third)
    assert second(X).tolist() == third(X).tolist() == [0, 2, 4]
    assert second(jnp.ones(5)).tolist() == [2] * 5


def test_an_error_while_tracing_is_the_users():
    def wrong(x):
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        SharedJit(wrong)(X)


def test_runs_that_differ_in_a_rate_compile_once_and_are_what_they_are_alone(tmp_path, compiled):
    def model_fn(features, labels, mode, params):
        y = features["x"] * ec.get_variable("slope", (), initializer=jax.nn.initializers.constant(params["first"]))
        train_op = optax.inject_hyperparams(optax.sgd)(learning_rate=params["rate"])
        return ec.EstimatorSpec(
            mode, loss=jnp.mean((y - params["to"] * labels) ** 2), train_op=train_op, predictions={"y": y}
        )

    x = np.linspace(-1, 1, 32, dtype=np.float32)
    inputs = ec.inputs.numpy_input_fn({"x": x}, 3 * x, batch_size=8, num_epochs=None, shuffle=True, seed=1)
    held = ec.inputs.numpy_input_fn({"x": x}, 3 * x, batch_size=8, shuffle=False)

    def found(name, **changed):
        params = {"rate": 0.1, "first": 0.5, "to": 1.0, **changed}
        run = ec.Estimator(model_fn, config=ec.RunConfig(str(tmp_path / name), default_hooks=False), params=params)
        run.train(inputs, max_steps=10)
        return run.get_variable_value("slope").tobytes(), run.evaluate(held)["loss"]

    runs = {"first": {}, "rate": {"rate": 0.3}, "again": {"rate": 0.2}, "start": {"first": 0.1}, "aim": {"to": 2.0}}
    shared, counts = {}, []
    for name, changed in runs.items():
        before = len(compiled)
        shared[name] = found(name, **changed)
        counts.append(len(compiled) - before)
    # First the initial values and the evaluation, while jax itself compiles the first step. Then the step that all
    # others share. Another start compiles the initial values. Another aim compiles the evaluation, and its step is the
    # first of its kind.
    assert counts == [2, 1, 0, 1, 1]
    for name, changed in runs.items():
        forget_shared()
        assert found(f"{name} alone", **changed) == shared[name]
    assert len(set(shared.values())) == 5
