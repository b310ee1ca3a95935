"""Tests of functions that JAX traces by itself inside model_fn, and of what they may call (traps 7 and 14)."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimator_core import summary
from estimator_core._model.access import get_variable, next_rng_key, set_variable, variable_scope
from estimator_core._model.module import module
from estimator_core._model.scope import applying, declaring
from estimator_core._model.tensors import tensor
from estimator_core.errors import ModelFnError, VariableError


def in_scan(function, x):
    return jax.lax.scan(lambda carry, _: (carry + function(x), None), x, None, length=2)[0]


def in_cond(function, x):
    return jax.lax.cond(x.sum() > 0, function, lambda x: x * 0, x)


def in_vmap(function, x):
    return jax.vmap(function)(x)


def in_grad(function, x):
    return jax.grad(lambda x: function(x).sum())(x)


def in_checkpoint(function, x):
    return jax.checkpoint(function)(x)


def in_jit(function, x):
    return jax.jit(function)(x)


INNER = [in_scan, in_cond, in_vmap, in_grad, in_checkpoint, in_jit]


@pytest.mark.parametrize("inner", INNER)
def test_variables_first_met_in_an_inner_trace_leak_nothing(runner, batch, inner):
    def model(x):
        return inner(lambda x: x * get_variable("scale", (), jax.nn.initializers.ones), x)

    run = runner(model).start(batch)
    assert list(run.specs) == ["scale"]
    expected = inner(lambda x: x * 1.0, jnp.asarray(batch))
    np.testing.assert_allclose(run.step(batch), expected, rtol=1e-6)
    gradient = jax.jit(jax.grad(lambda v: _loss(run, v, model, batch)))(run.variables)["scale"]
    assert np.isfinite(gradient)


def _loss(run, variables, model, x):
    with applying(variables, {}, mode="train", key=None, specs=run.specs):
        return model(x).sum()


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize(
    ("ask", "error", "advice"),
    [
        (lambda x: next_rng_key(), VariableError, "take one key outside"),
        (lambda x: set_variable("a", 1.0), VariableError, "set it outside"),
        (lambda x: summary.scalar("s", 1.0), ModelFnError, "name it outside"),
        (lambda x: tensor("t", x), ModelFnError, "name it outside"),
        (lambda x: module(lambda x: x, name="m"), VariableError, "make the module outside"),
    ],
)
def test_what_would_be_wrong_in_an_inner_trace_is_refused_with_advice(runner, batch, inner, ask, error, advice):
    def model(x):
        get_variable("a", (), trainable=False)

        def function(x):
            ask(x)
            return x

        return inner(function, x)

    with pytest.raises(error, match=advice):
        runner(model).discover(batch)


@jax.jit
def jitted(x):
    return x * get_variable("scale", (), jax.nn.initializers.constant(3.0))


def body(carry, _):
    return jitted(carry), None


checkpointed = jax.checkpoint(jitted)


def test_a_summary_of_a_prediction_is_written_by_nobody_and_may_come_again(batch):
    def model(x):
        summary.scalar("mean", x.mean())
        return jnp.sum(x**2)

    def found(mode):
        def traced(x):
            with declaring({}, mode=mode) as scope:
                y = model(x) + jax.grad(model)(x).sum() + model(x)
            names.extend(scope.summaries)
            return y

        names = []
        jax.eval_shape(traced, batch)
        return names

    with pytest.raises(ModelFnError, match="name it outside"):
        found("train")
    assert found("infer") == ["mean"]


@pytest.mark.parametrize("function", [jitted, checkpointed, lambda x: jax.lax.scan(body, x, None, length=1)[0]])
def test_jax_does_not_serve_a_scope_from_the_traces_of_another(runner, batch, function):
    # JAX traces a function that is defined once only once, so it would always use the zeros of the discovery.
    run = runner(function).start(batch)
    np.testing.assert_allclose(run.step(batch), 3 * batch, rtol=1e-6)
    run.variables = {"scale": jnp.float32(5.0)}
    np.testing.assert_allclose(run.step(batch, mode="eval"), 5 * batch, rtol=1e-6)


def test_nor_one_scope_path_from_another(runner, batch):
    def model(x):
        with variable_scope("a"):
            x = jitted(x)
        with variable_scope("b"):
            return jitted(x)

    run = runner(model).start(batch)
    assert list(run.specs) == ["a/scale", "b/scale"]
    run.variables = {"a/scale": jnp.float32(2.0), "b/scale": jnp.float32(5.0)}
    np.testing.assert_allclose(run.step(batch), 10 * batch, rtol=1e-6)


def test_without_compilation_nothing_is_compiled_again_at_each_step(runner, batch):
    run = runner(lambda x: jnp.where(x > 0, x * get_variable("scale", ()), x)).start(batch)

    def step():
        with applying(run.variables, {}, mode="train", key=None, specs=run.specs):
            return run.model(jnp.asarray(batch))

    step()
    with jax.log_compiles(), _counting_compilations() as count:
        step()
    assert count == []


def test_without_compilation_a_variable_read_in_a_compiled_function_is_refused(runner, batch):
    run = runner(jitted).start(batch)
    with applying(run.variables, {}, mode="train", key=None, specs=run.specs):
        with pytest.raises(VariableError, match=r"jax\.disable_jit\(\)"):
            jitted(jnp.asarray(batch))
        with jax.disable_jit():
            np.testing.assert_allclose(jitted(jnp.asarray(batch)), 3 * batch, rtol=1e-6)


def test_initialisers_that_carry_a_traced_value(runner, batch):
    def closes_over(x):
        mean = x.mean()
        return get_variable("a", (), lambda key, shape, dtype: mean)

    def bound(x):
        return get_variable("a", (), functools.partial(lambda value, *_: value, x.mean()))

    def itself(x):
        return get_variable("a", (), x.mean())

    for model in (closes_over, bound, itself):
        with pytest.raises(VariableError, match=r"initializer of variable 'a'.*(traced value)"):
            runner(model).discover(batch)


def test_initialisers_that_hide_a_traced_value(runner, batch):
    def model(x):
        box = {"mean": x.mean()}
        get_variable("innocent", (), jax.nn.initializers.ones)
        return get_variable("a", (), lambda key, shape, dtype: box["mean"] * 2)

    run = runner(model)
    run.discover(batch)
    with pytest.raises(VariableError, match=r"variable 'a' uses a value that exists only while model_fn is traced"):
        run.initialize()


class _counting_compilations:
    def __enter__(self):
        import logging

        self.messages, self.handler = [], logging.Handler()
        self.handler.emit = lambda record: self.messages.append(record.getMessage())
        logging.getLogger("jax").addHandler(self.handler)
        return self.messages

    def __exit__(self, *_):
        import logging

        logging.getLogger("jax").removeHandler(self.handler)


def test_the_counter_of_compilations_counts():
    with jax.log_compiles(), _counting_compilations() as count:
        jax.jit(lambda x: x + 1)(np.ones(3))
    assert count


def test_declaring_is_abstract(batch):
    def trace(x):
        with declaring({}, mode="train"):
            return x @ get_variable("huge", (3, 2**30))

    assert jax.eval_shape(trace, batch).shape == (8, 2**30)
