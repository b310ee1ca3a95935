"""Tests of names with an exact successor in some forms: `migrate rewrite` changes those, and notes all others."""

import functools
import logging
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimator_migration import Verdict, check, rewrite, table
from plugins.migration.tests.forms import DIFFERS, EXACT, KEPT, LEVELS, VALUES

IMPORT = "import tensorflow as tf\n"
ARRAYS: dict[str, Any] = {
    "x": np.array([[1.5, -2.5, 0.5], [0.0, 4.0, -1.0]], np.float32),
    "y": np.array([[2.0, -3.0, 0.5], [1.0, 4.0, 7.0]], np.float32),
    "w": np.array([[1.0], [0.5], [-2.0]], np.float32),
    "i": np.array([2, 0, -1], np.int32),
    "b": np.array([True, False, True]),
    "one": np.ones((1, 3, 1), np.float32),
}


def last_line(source: str) -> str:
    return rewrite(IMPORT + source).source.splitlines()[-1]


def result(expression: str) -> Any:
    """Returns the value of an expression after a rewrite that leaves no name of TensorFlow."""
    done = rewrite(f"{IMPORT}z = {expression}\n").source
    assert "tf." not in done.splitlines()[-1]
    names: dict[str, Any] = {name: jnp.asarray(value) for name, value in ARRAYS.items()}
    exec(done.replace("import tensorflow as tf\n", ""), names)
    return names["z"]


@pytest.mark.parametrize("written", EXACT)
def test_an_exact_form_is_rewritten_without_a_note(written: str) -> None:
    done = rewrite(f"{IMPORT}z = {written}\n").source
    assert done.splitlines()[-1] == f"z = {EXACT[written]}"
    assert "# MIGRATE" not in done
    assert rewrite(done).source == done


@pytest.mark.parametrize("written", DIFFERS)
def test_a_form_that_differs_is_rewritten_with_a_note(written: str) -> None:
    done = rewrite(f"{IMPORT}z = {written}\n").source
    assert done.splitlines()[-1] == f"z = {DIFFERS[written][0]}"
    assert DIFFERS[written][1] in done.replace("\n#   ", " ")


@pytest.mark.parametrize("source", KEPT)
def test_a_form_without_an_exact_successor_keeps_its_note(source: str) -> None:
    done = rewrite(IMPORT + source).source
    last = source.splitlines()[-1].rpartition("#")
    name = last[2].strip()
    assert f"# MIGRATE: {name}: " in done
    assert done.splitlines()[-1].split("#")[0].count(name) == last[0].count(name)
    verdicts = [use.row.verdict for use in check(IMPORT + source) if use.row.name == name]
    assert Verdict.REWRITE in verdicts


def test_every_row_that_depends_on_the_form_has_a_case() -> None:
    written = "\n".join([*EXACT, *DIFFERS, *LEVELS])
    rows = [row for row in table().values() if row.of_forms]
    assert [row.name for row in rows if not row.how] == []
    assert [row.name for row in rows if not re.search(re.escape(row.name) + r"(?![\w.])", written)] == []


@pytest.mark.parametrize("written", VALUES)
def test_a_rewritten_form_computes_what_the_other_did(written: str) -> None:
    found, expected = result(written), np.asarray(VALUES[written](**ARRAYS))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.dtype(found.dtype) == expected.dtype


#: The gradients of TensorFlow at 0, by function name.
GRADIENTS = {
    "tf.exp": 1.0,
    "tf.log": np.inf,
    "tf.sqrt": np.inf,
    "tf.square": 0.0,
    "tf.tanh": 1.0,
    "tf.cumsum": 1.0,
    "tf.identity": 1.0,
    "tf.nn.l2_loss": 0.0,
    "tf.reduce_max": 1.0,
    "tf.reduce_mean": 1.0,
    "tf.reduce_min": 1.0,
    "tf.reduce_prod": 1.0,
    "tf.reduce_sum": 1.0,
    "tf.sigmoid": 0.25,
    "tf.nn.elu": 1.0,
    "tf.nn.relu": 0.0,
    "tf.nn.relu6": 0.0,
    "tf.nn.silu": 0.5,
    "tf.nn.softplus": 0.5,
    "tf.nn.softsign": 1.0,
    "tf.nn.swish": 0.5,
}
#: Functions of one array without a gradient at 0, or whose gradient has only one form.
WITHOUT_A_GRADIENT = {
    *("tf.floor", "tf.logical_not", "tf.round", "tf.sign"),
    *("tf.reduce_all", "tf.reduce_any", "tf.nn.softmax", "tf.nn.log_softmax"),
    *("tf.contrib.slim.softmax", "tf.contrib.slim.one_hot_encoding"),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_an_exact_function_has_the_gradient_of_the_other_at_0(name: str) -> None:
    function = result(f"lambda x: {name}(x)")
    found = jax.grad(lambda x: jnp.sum(function(x)))(jnp.zeros(1))
    assert found.tolist() == [GRADIENTS[name]]


def test_every_exact_function_of_one_array_has_a_gradient() -> None:
    """A row whose note says "differs" needs no gradient."""
    exact = (Verdict.RENAMED, Verdict.PARTLY)
    rows = [row for row in table().values() if row.verdict in exact and row.home.startswith(("jax.numpy:", "jax.nn:"))]
    of_one = [row.name for row in rows if row.bare == "function" and row.places[1:] == ("name=",)]
    others = [row.name for row in rows if not row.of_forms]
    assert set(of_one + others) - set(GRADIENTS) == WITHOUT_A_GRADIENT


@pytest.mark.parametrize("name", ["tf.abs", "tf.nn.selu", "tf.nn.leaky_relu", "tf.maximum", "tf.minimum"])
def test_a_function_with_another_gradient_where_it_has_a_kink_differs(name: str) -> None:
    assert table()[name].verdict is Verdict.DIFFERS
    assert "gradient" in table()[name].how


def test_an_absolute_difference_by_hand_is_told_of_its_gradient() -> None:
    assert "x * jnp.sign(x) has 0" in table()["tf.losses.absolute_difference"].how
    assert jax.grad(lambda x: x * jnp.sign(x))(0.0) == 0.0
    assert jax.grad(jnp.abs)(0.0) == 1.0


def test_the_norm_by_hand_is_that_of_l2_normalize() -> None:
    how = table()["tf.nn.l2_normalize"].how
    assert "0.5 *" not in how
    names: dict[str, Any] = {"jax": jax, "jnp": jnp, "x": jnp.array([[3.0, 4.0], [0.0, 0.0]]), "axis": 1}
    found = eval(how.split("l2_normalize: ")[1].split("), or")[0], names)
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6)


def test_a_cast_drops_fractions_and_a_truth_value_is_what_is_not_zero() -> None:
    assert result("tf.cast([1.7, -1.7, 0.0], tf.int32)").tolist() == [1, -1, 0]
    assert result("tf.cast(x, tf.bool)").tolist() == (ARRAYS["x"] != 0).tolist()
    assert result("tf.cast(b, tf.float32)").tolist() == [1.0, 0.0, 1.0]


def test_a_constant_is_a_copy() -> None:
    names: dict[str, Any] = {"v": np.zeros(64, np.float32)}
    exec(rewrite(f"{IMPORT}z = tf.constant(v, tf.float32)\n").source, names)
    names["v"][:] = 1.0
    assert not names["z"].any()


@pytest.mark.parametrize(
    ("written", "mean", "deviation"),
    [
        ("tf.zeros_initializer()", 0.0, 0.0),
        ("tf.ones_initializer(tf.float32)", 1.0, 0.0),
        ("tf.constant_initializer(-0.5)", -0.5, 0.0),
        ("tf.constant_initializer()", 0.0, 0.0),
        ("tf.truncated_normal_initializer(0.0, 0.5)", 0.0, 0.5 * 0.87962566),
        ("tf.truncated_normal_initializer()", 0.0, 0.87962566),
        ("tf.random_normal_initializer(stddev=2.0)", 0.0, 2.0),
        ("tf.glorot_normal_initializer()", 0.0, (2 / 600) ** 0.5),
        ("tf.glorot_uniform_initializer()", 0.0, (2 / 600) ** 0.5),
    ],
)
def test_an_initializer_makes_values_of_that_mean_and_deviation(written: str, mean: float, deviation: float) -> None:
    values = result(written)(jax.random.key(0), (200, 400), jnp.float32)
    np.testing.assert_allclose(values.mean(), mean, atol=0.05)
    np.testing.assert_allclose(values.std(), deviation, rtol=0.02)


def test_a_dtype_is_that_of_arrays() -> None:
    assert ARRAYS["x"].dtype == result("tf.float32")
    assert ARRAYS["b"].dtype == result("tf.bool")


@pytest.mark.plugins
def test_a_dtype_is_that_of_features() -> None:
    from estimator_core.export import FixedLenFeature

    assert FixedLenFeature([], result("tf.int32")).dtype == FixedLenFeature([], np.int32).dtype


@pytest.mark.parametrize("written", LEVELS)
def test_lines_are_logged_as_python_logs(written: str) -> None:
    assert last_line(f"{written}\n") == LEVELS[written]


def test_a_level_is_set_whatever_handlers_there_are(capfd: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    source = (
        "tf.logging.info('unseen')\ntf.logging.set_verbosity(tf.logging.INFO)\ntf.logging.info('seen %d', 1)\n"
        "core.info('of the core')\ntf.logging.set_verbosity('ERROR')\ntf.logging.warn('late')\n"
    )
    try:
        for handler in handlers:
            root.removeHandler(handler)
        root.setLevel(logging.WARNING)
        exec(rewrite(IMPORT + source).source, {"core": logging.getLogger("estimator_core.of_this_test")})
        assert capfd.readouterr().err == "INFO:root:seen 1\nINFO:estimator_core.of_this_test:of the core\n"
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def test_another_logging_is_not_taken_for_that_of_python() -> None:
    done = rewrite(f"{IMPORT}from absl import logging\nlogging.info('a')\ntf.logging.info('b')\n").source
    assert "tf.logging.info('b')" in done
    assert "and give another name to logging of this program." in done.replace("\n#   ", " ")


def test_the_import_of_logging_is_written_once() -> None:
    done = rewrite(f"import logging\n{IMPORT}tf.logging.info('a')\nlogging.info('b')\n").source
    assert done == "import logging\nlogging.info('a')\nlogging.info('b')\n"


def test_a_name_that_is_imported_by_itself() -> None:
    done = rewrite("from tensorflow import bool, cast, float32\nz = cast(y, float32), bool\n").source
    assert "from jax.numpy import bool_ as bool, float32\n" in done
    assert "# MIGRATE: tf.cast: " in done
    assert "# MIGRATE: tf.float32" not in done
    assert done.endswith("z = cast(y, float32), bool\n")


def test_a_name_that_is_looked_up_or_imported_with_a_star_keeps_its_note() -> None:
    for source in (f"{IMPORT}z = getattr(tf, 'cast')(y, 3)\n", "from tensorflow import *\nz = cast(y, 'int32')\n"):
        done = rewrite(source).source
        assert done.splitlines()[-1] == source.splitlines()[-1]
        assert "# MIGRATE: tf.cast: jnp.asarray(x, dtype)" in done


def test_comments_of_arguments_that_go_stay() -> None:
    source = "z = tf.one_hot(\n    i,  # words\n    depth=3,\n    on_value=1.0,  # hot\n)\n"
    done = rewrite(IMPORT + source).source
    assert done.count("# words") == done.count("# hot") == 1
    assert "on_value" not in done


def test_check_says_which_uses_are_mechanical() -> None:
    verdicts = functools.partial(map, lambda use: (use.row.name, use.row.verdict.value))
    assert list(verdicts(check(f"{IMPORT}tf.expand_dims(x, dim=1)\ntf.expand_dims(x, n)\n")))[1:] == [
        ("tf.expand_dims", "renamed"),
        ("tf.expand_dims(dim=)", "renamed"),
        ("tf.expand_dims", "rewrite by hand"),
    ]
    assert table()["tf.expand_dims"].verdict is Verdict.PARTLY
