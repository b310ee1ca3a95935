"""Tests of variables with the same initialiser, shape and dtype: one program draws their initial values, with the same
bits.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.nn import initializers

from estimator_core._model import initialize as initializing
from estimator_core._model.initial_value_groups import repeated
from estimator_core._model.initialize import initialize
from estimator_core._model.variables import VariableSpec, make_spec

#: Module state that an initialiser of a user may read besides its arguments.
NUMBERS: list[Iterator[int]] = []

MAKERS = {
    "default": lambda: None,
    "normal": lambda: initializers.normal(0.1),
    "truncated_normal": lambda: initializers.truncated_normal(0.02),
    "he_uniform": lambda: initializers.he_uniform(),
    "orthogonal": lambda: initializers.orthogonal(),
}


SHAPES = {"a": (3, 5), "b": (4, 4)}


def alike(make: Any, dtype: Any = jnp.float32, count: int = 6) -> dict[str, VariableSpec]:
    """Returns variables of two shapes, each with its own initialiser, and one more variable with a unique shape."""
    shapes = {f"{name}{index}": shape for name, shape in SHAPES.items() for index in range(count)}
    specs = {path: make_spec(path, shape, make(), dtype=dtype) for path, shape in shapes.items()}
    return specs | {"c": make_spec("c", (2, 7), make(), dtype=dtype)}


def bits(values: Mapping[str, jax.Array]) -> dict[str, bytes]:
    return {path: np.asarray(value).tobytes() for path, value in values.items()}


CASES = {
    f"{name}-{dtype.__name__}": (make, dtype)
    for name, make in MAKERS.items()
    for dtype in (jnp.float32, jnp.bfloat16, jnp.float16)
    if name != "orthogonal" or dtype is jnp.float32  # jax does not decompose 16-bit matrices
}
QUICK = ("default-float32", "orthogonal-float32")


@pytest.mark.parametrize(
    ("make", "dtype"),
    [pytest.param(*case, marks=() if name in QUICK else pytest.mark.slow) for name, case in CASES.items()],
    ids=CASES,
)
def test_the_bits_are_those_of_one_program_for_all(monkeypatch: pytest.MonkeyPatch, make: Any, dtype: Any) -> None:
    specs = alike(make, dtype)
    assert repeated(specs, None, 4) == [(shape, [f"{name}{at}" for at in range(6)]) for name, shape in SHAPES.items()]
    together = bits(initialize(specs, seed=2**40 + 3))
    assert list(together) == list(specs)
    monkeypatch.setattr(initializing, "FEWEST_ALIKE", 100)
    assert bits(initialize(specs, seed=2**40 + 3)) == together
    assert len(set(together.values())) == len(specs)


def test_each_group_is_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[str] = []
    first = initializing._first

    def counted(spec: VariableSpec, key: Any) -> Any:
        traced.append(spec.name)
        return first(spec, key)

    monkeypatch.setattr(initializing, "_first", counted)
    initialize(alike(MAKERS["normal"], count=50), seed=1)
    assert sorted(traced) == ["a0", "b0", "c"]


def test_what_an_initialiser_of_a_user_reads_elsewhere_counts_for_each_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "NUMBERS", [itertools.count()])
    scale = 1.0

    def counting(key: Any, shape: Any, dtype: Any) -> Any:
        return jnp.full(shape, scale * next(NUMBERS[0]), dtype)

    specs = {f"v{index}": make_spec(f"v{index}", (2,), counting) for index in range(9)}
    assert repeated(specs, None, 4) == []
    assert [float(value[0]) for value in initialize(specs, seed=1).values()] == list(range(9))


def test_other_numbers_in_an_initialiser_are_another_one() -> None:
    scales = [0.1] * 4 + [0.2] * 4 + [1.0] * 3 + [1] * 3  # an int draws with another dtype
    specs = {f"v{at}": make_spec(f"v{at}", (2,), initializers.normal(scale)) for at, scale in enumerate(scales)}
    groups = [["v0", "v1", "v2", "v3"], ["v4", "v5", "v6", "v7"]]
    assert repeated(specs, None, 4) == [((2,), paths) for paths in groups]
    assert repeated({f"w{at}": make_spec(f"w{at}", (2,), initializers.zeros) for at in range(9)}, None, 4) == []


@pytest.mark.parametrize(
    "parts",
    [pytest.param((0.1,), marks=pytest.mark.slow), (np.linspace(1, 2, 3000, dtype=np.float32),)],
    ids=["numbers", "arrays"],
)
def test_numbers_in_a_tuple_are_compared_whole(parts: tuple[Any, ...]) -> None:
    other = (
        np.nextafter(parts[0], 9) if isinstance(parts[0], float) else np.where(np.arange(3000) == 1500, 7, parts[0]),
    )
    made = [initializers.normal(scale) for scale in (parts, parts, parts, parts, other)]
    specs = {f"v{at}": make_spec(f"v{at}", (1, 3000), initializer) for at, initializer in enumerate(made)}
    assert all("v4" not in paths for _, paths in repeated(specs, None, 2))
    values = initialize(specs, seed=1)
    alone = {path: initialize({path: spec}, seed=1)[path] for path, spec in specs.items()}
    assert bits(values) == bits(alone)


#: The numbers of rows: both sides of powers of four, and others.
ROWS = (1, 3, 4, 5, 9, 12, 16, 17, 33, 52, 64, 65, 130, 200, 256)


def rows_of_tables(make: Any, trailing: tuple[int, ...], rows: Sequence[int] = ROWS, dtype: Any = jnp.float32) -> Any:
    return {f"t{count}": make_spec(f"t{count}", (count, *trailing), make(), dtype=dtype) for count in rows}


@pytest.mark.parametrize(
    ("make", "trailing", "dtype"),
    [
        (lambda: initializers.truncated_normal(0.25), (3,), jnp.float32),
        pytest.param(lambda: initializers.normal(0.1), (8,), jnp.float32, marks=pytest.mark.slow),
        pytest.param(lambda: initializers.uniform(0.1), (), jnp.float32, marks=pytest.mark.slow),
        pytest.param(lambda: initializers.truncated_normal(0.25), (2, 5), jnp.bfloat16, marks=pytest.mark.slow),
        pytest.param(lambda: initializers.glorot_uniform(), (7,), jnp.float32, marks=pytest.mark.slow),
    ],
    ids=["truncated_normal", "normal", "uniform", "bfloat16", "glorot_uniform"],
)
def test_tables_of_any_number_of_rows_have_the_bits_that_they_have_alone(
    make: Any, trailing: tuple[int, ...], dtype: Any
) -> None:
    specs = rows_of_tables(make, trailing, dtype=dtype)
    together = initialize(specs, seed=7)
    assert bits(together) == bits({path: initialize({path: spec}, seed=7)[path] for path, spec in specs.items()})
    assert {path: value.shape for path, value in together.items()} == {path: one.shape for path, one in specs.items()}


@pytest.mark.slow
def test_many_tables_have_the_bits_that_they_have_alone() -> None:
    rows = np.random.default_rng(1).integers(1, 5000, 60).tolist()
    specs = rows_of_tables(lambda: initializers.truncated_normal(0.25), (16,), rows)
    together = initialize(specs, seed=7)
    assert bits(together) == bits({path: initialize({path: spec}, seed=7)[path] for path, spec in specs.items()})


def test_rows_are_drawn_exactly_where_their_number_changes_the_bits() -> None:
    specs = rows_of_tables(lambda: initializers.normal(0.1), (3,), (5, 6, 7, 9))
    with jax.threefry_partitionable(False):
        together = initialize(specs, seed=7)
        assert bits(together) == bits({path: initialize({path: spec}, seed=7)[path] for path, spec in specs.items()})


def test_a_program_draws_tables_of_similar_numbers_of_rows() -> None:
    specs = rows_of_tables(lambda: initializers.normal(0.1), (3,))
    assert [shape for shape, _ in repeated(specs, None, 4)] == [(16, 3), (64, 3), (256, 3)]
    assert repeated(rows_of_tables(initializers.glorot_uniform, (3,)), None, 4) == []  # rows change its scale
    with jax.threefry_partitionable(False):  # rows change the bits
        assert repeated(specs, None, 4) == []
    large = {f"t{at}": make_spec(f"t{at}", (2**18 + at, 64), initializers.normal(0.1)) for at in range(9)}
    assert repeated(large, None, 4) == []


_TWO_DEVICES = """
import jax, numpy as np
from jax.nn import initializers
from estimator_core._model.initialize import initialize
from estimator_core._model.variables import make_spec

specs = {f"v{at}": make_spec(f"v{at}", (3, 2), initializers.normal(1.0)) for at in range(4)}
specs |= {f"t{at}": make_spec(f"t{at}", (5 + at, 2), initializers.normal(1.0)) for at in range(4)}
specs |= {"zeros": make_spec("zeros", (2,), initializers.zeros), "ones": make_spec("ones", (2,), initializers.ones)}
for device in jax.devices():
    with jax.set_mesh(jax.sharding.Mesh(np.array([device]), ("data",))):
        values = initialize(specs, seed=1)
        assert {path: value.devices() for path, value in values.items()} == dict.fromkeys(specs, {device})
"""


def test_values_are_on_the_device_of_the_mesh_of_each_estimator() -> None:
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", _TWO_DEVICES], check=True, env=environment)


def test_a_place_of_its_own_is_another_group() -> None:
    (device,) = jax.devices()[:1]
    mesh = jax.sharding.Mesh(np.array([device]), ("data",))
    split, whole = (jax.sharding.NamedSharding(mesh, jax.P(*axes)) for axes in (("data",), ()))
    specs = {f"v{at}": make_spec(f"v{at}", (4, 2), initializers.normal(1.0)) for at in range(10)}
    places = {path: split if at < 6 else whole for at, path in enumerate(specs)}
    assert [len(paths) for _, paths in repeated(specs, places, 4)] == [6, 4]
    values = initialize(specs, seed=1, out_shardings=places)
    assert all(value.sharding == places[path] for path, value in values.items())
    assert bits(values) == bits(initialize(specs, seed=1))


def test_another_estimator_of_the_same_model_compiles_nothing(caplog: pytest.LogCaptureFixture) -> None:
    specs = alike(MAKERS["truncated_normal"])
    initialize(specs, seed=1)
    with jax.log_compiles():
        initialize(alike(MAKERS["truncated_normal"]), seed=2)
    assert [record for record in caplog.records if "Compiling" in record.getMessage()] == []
