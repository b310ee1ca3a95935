"""A cache on the device for a table in the memory of the host changes no numbers for any reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cache_traffic
import cached_program
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from cached_program import ROWS, batches, estimator_in, growing_in, input_fn
from own_process import joined, on_devices

import estimator_core as ec
from estimator_core.checkpoint import read_checkpoint
from estimator_tables import AllToAll
from estimator_tables.cache import WAYS, CachedRows, CachedTable

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10, 2), reason="needs jax 0.10.2")
STEPS = 12


def saved(model_dir: Path) -> dict[str, bytes]:
    """The variables and slots of the newest checkpoint."""
    found = read_checkpoint(str(ec.latest_checkpoint(str(model_dir))))
    return {name: np.asarray(value).tobytes() for name, value in {**found.variables, **found.opt_state}.items()}


class Seen(ec.Hook):
    """Records the table and its slots as hooks see them, every third step."""

    def __init__(self) -> None:
        self.found: list[list[np.ndarray]] = []

    def after_step(self, run: Any, step: int, out: Any) -> None:
        if step % 3 == 0:
            state = run.state
            self.found.append([np.array(leaf) for leaf in jax.tree.leaves((state.variables, state.opt_state))])


@pytest.mark.parametrize(
    ("optimizer", "settings"),
    [
        pytest.param("sgd", {}, marks=pytest.mark.slow),
        pytest.param("adagrad", {"accumulate_steps": 2}, marks=pytest.mark.slow),
        ("adam", {"steps_per_dispatch": 3}),
    ],
    ids=["sgd", "adagrad", "adam"],
)
def test_the_numbers_are_those_without_a_cache_bit_for_bit(
    tmp_path: Path, optimizer: str, settings: dict[str, Any]
) -> None:
    """The batches have rows that leave the cache and return, only misses, or repeated ids."""
    seen = Seen(), Seen()
    for cached_rows, hook in zip((0, 16), seen, strict=True):
        estimator = estimator_in(str(tmp_path / str(cached_rows)), cached_rows, optimizer, **settings)
        estimator.train(input_fn(STEPS), hooks=[hook])
    assert saved(tmp_path / "0") == saved(tmp_path / "16")
    assert len(seen[0].found) == STEPS // 3
    jax.tree.map(np.testing.assert_array_equal, *(hook.found for hook in seen))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> ec.Estimator:
    """An estimator that trained without a cache and without interruption."""
    estimator = estimator_in(str(tmp_path_factory.mktemp("plain")), 0)
    return estimator.train(input_fn(STEPS))


@pytest.mark.slow
def test_a_run_continues_with_a_cache_with_another_one_and_without(plain: ec.Estimator, tmp_path: Path) -> None:
    """Checkpoints contain only the table, including those with only the changed rows."""
    for until, cached_rows in ((3, 0), (6, 16), (9, 64), (11, 0), (STEPS, 8)):
        estimator = estimator_in(str(tmp_path), cached_rows, save_checkpoints_steps=1, full_checkpoint_every=4)
        estimator.train(input_fn(STEPS), max_steps=until)
    assert saved(tmp_path) == saved(Path(plain.model_dir))


def test_evaluation_prediction_and_exports_between_two_trainings(plain: ec.Estimator, tmp_path: Path) -> None:
    """They read the rows in the cache. The cache stays, and nothing changes."""
    estimator = estimator_in(str(tmp_path), 16)
    estimator.train(input_fn(STEPS), max_steps=STEPS - 1).evaluate(lambda: batches(1))
    estimator.train(input_fn(STEPS), max_steps=STEPS)
    assert estimator.evaluate(lambda: batches(1)) == plain.evaluate(lambda: batches(1))
    features = batches(1)[0][0]
    expected, found = (np.array([each["y"] for each in one.predict(lambda: [features])]) for one in (plain, estimator))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(estimator.variables["table"], plain.variables["table"])
    pytest.importorskip("estimator_exporters")
    receiver = ec.export.build_raw_serving_input_receiver_fn({"ids": features["ids"]})
    served = ec.export.load(estimator.export_saved_model(str(tmp_path / "export"), receiver))
    outputs = served.signatures["serving_default"](ids=features["ids"])
    np.testing.assert_allclose(np.asarray(outputs["y"]), expected, rtol=1e-5)


@pytest.mark.slow
def test_a_growing_table_with_a_cache(tmp_path: Path) -> None:
    """A row with a new owner starts again, in the cache or on the host."""
    rng = np.random.default_rng(5)
    drawn = [
        ({"user": rng.integers(step * 20, step * 20 + 60, (64, 2))}, rng.normal(size=64).astype(np.float32))
        for step in range(STEPS)
    ]
    for cached_rows in (0, 32):
        growing_in(str(tmp_path / str(cached_rows)), cached_rows).train(lambda: drawn)
    assert saved(tmp_path / "0") == saved(tmp_path / "32")


def on_host(array: jax.Array) -> jax.Array:
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    return jax.device_put(array, jax.NamedSharding(mesh, jax.P(), memory_kind="pinned_host"))


def after(ids: list[list[int]], cached_rows: int = 16) -> tuple[CachedTable, Any, CachedRows]:
    """The cached form of a table of 64 rows, after steps that looked up some rows."""
    access = AllToAll(memory="pinned_host", cached_rows=cached_rows)
    form, optimizer = access.carried, optax.with_extra_args_support(optax.sgd(1.0, momentum=0.9))
    assert form is not None
    table = jnp.arange(128.0).reshape(64, 2)
    cached, slots = form.opened(on_host(table), jax.tree.map(on_host, optimizer.init(table)))
    update = jax.jit(lambda *state: access.update(optimizer, *state), donate_argnums=(0, 1))
    for each in ids:
        cached, slots = update(cached, slots, jnp.array(each, int), jnp.ones((len(each), 2)))
    return cached, slots, form


def test_rows_in_the_cache_are_read_and_updated_there() -> None:
    """The host receives them when another reader needs them."""
    cached, slots, form = after([[1, 3], [3, 40], [3, 3, 1]])
    np.testing.assert_array_equal(np.asarray(cached.host), np.arange(128.0).reshape(64, 2))
    access = AllToAll(memory="pinned_host", cached_rows=16)
    emptied = cached._replace(host=on_host(jnp.full((64, 2), jnp.nan)))
    read = jax.jit(access.read)(emptied, jnp.array([3, 40, 1, 64, -1]))
    np.testing.assert_allclose(read, [[-0.61, 0.39], [79, 80], [-0.9, 0.1], [0, 0], [0, 0]], rtol=1e-5)
    assert np.isnan(jax.jit(access.read)(emptied, jnp.array([5]))).all()
    table, momentum = form.closed(*form.settled(cached, slots))
    np.testing.assert_array_equal(np.asarray(table)[[3, 40, 1]], read[:3])
    assert np.asarray(momentum[0].trace)[[1, 3, 40, 5]].all(axis=1).tolist() == [True, True, True, False]


def test_frequent_rows_stay_and_rare_ones_pass() -> None:
    """In one set of eight places, two rows of each step keep their places, while forty others appear once."""
    cached, _, _ = after([[0, 1, *range(step * 4 + 8, step * 4 + 12)] for step in range(10)], cached_rows=WAYS)
    kept = np.asarray(cached.ids).ravel()
    assert {0, 1} < set(kept)
    assert {44, 45, 46, 47} < set(kept), "what came last takes the place of what came once before"


class Hits(ec.Hook):
    """Records the share of rows that the cache had, as each step shows it."""

    def __init__(self) -> None:
        self.found: list[float] = []

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.found.append(float(out["table/cache_hits"]))


def distinct(ids: Any) -> set[int]:
    return {int(one) for one in ids.ravel() if 0 <= one < ROWS}


def test_a_step_shows_which_part_of_the_rows_of_the_one_before_the_cache_had(tmp_path: Path) -> None:
    """The cache has places for nearly all rows. So a row is missing only when it appears for the first time."""
    hits = Hits()
    estimator_in(str(tmp_path), ROWS - 8).train(input_fn(4), hooks=[hits])
    rows = [distinct(features["ids"]) for features, _ in batches(4)]
    known = [set[int]().union(*rows[:step]) for step in range(4)]
    shares = [len(one & before) / len(one) for one, before in zip(rows, known, strict=True)]
    np.testing.assert_allclose(hits.found, [0, *shares[:3]], rtol=1e-6)
    assert shares[2] > 0.3


@pytest.mark.slow
def test_tables_without_a_cache_show_no_hits_and_growing_ones_do(tmp_path: Path) -> None:
    class Names(ec.Hook):
        found: tuple[str, ...] = ()

        def after_step(self, run: Any, step: int, out: Any) -> None:
            self.found = tuple(name for name in out if "cache_hits" in name)

    without, growing = Names(), Names()
    estimator_in(str(tmp_path / "0"), 0).train(input_fn(1), hooks=[without])
    users = np.array([[7, 7], [9, 7]])
    growing_in(str(tmp_path / "1"), 16).train(lambda: [({"user": users}, np.ones(2, np.float32))], hooks=[growing])
    assert without.found == ()
    assert growing.found == ("user/rows/cache_hits",)


@pytest.mark.slow
def test_more_rows_than_places_in_one_step_and_none() -> None:
    cached, slots, form = after([list(range(64)), [], list(range(20, 40))])
    assert jax.jit(AllToAll(memory="pinned_host", cached_rows=16).read)(cached, jnp.zeros((0, 3), int)).shape == (
        0,
        3,
        2,
    )
    table, _ = form.closed(*form.settled(cached, slots))
    expected = np.arange(128.0).reshape(64, 2) - 1
    expected[20:40] -= 1.9
    np.testing.assert_allclose(np.asarray(table), expected, rtol=1e-6)


@pytest.mark.slow
def test_few_rows_travel_where_ids_repeat_from_step_to_step() -> None:
    """The ids follow Zipf's law. The counts are those of the rows that the host read and wrote."""
    ids = cache_traffic.drawn(20, 1.05, count=20_000, ids=1024)
    without, cached = (cache_traffic.bytes_of(ids, places, after=15, count=20_000) for places in (0, 4096))
    row = cache_traffic.COLUMNS * 4
    assert without == {"read": 5 * 1024 * row * 4, "written": 5 * 1024 * row * 3}
    assert 3 * cached.total() < without.total()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cached_rows": 12, "memory": "pinned_host"}, "cached_rows must be a multiple of 8, or 0 for none, given: 12"),
        ({"cached_rows": 16.0, "memory": "pinned_host"}, "given: 16.0"),
        ({"cached_rows": -8, "memory": "pinned_host"}, "given: -8"),
        ({"cached_rows": 16}, "in the memory of the devices already"),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ec.EstimatorError, match=message):
        AllToAll(**arguments)


def test_a_cache_for_the_whole_table_is_refused_before_the_first_step(tmp_path: Path) -> None:
    with pytest.raises(ec.EstimatorError, match=f"cached_rows={ROWS}.: the table has {ROWS} rows"):
        estimator_in(str(tmp_path), ROWS).train(input_fn(1))
    assert ec.latest_checkpoint(str(tmp_path)) is None


@pytest.mark.slow
def test_a_hundred_steps_killed_and_continued_on_other_devices_with_other_caches(tmp_path: Path) -> None:
    """The run is killed on eight devices between two saves.

    It resumes with another cache, then on one device without any.
    """
    assert on_devices(8, cached_program.__file__, tmp_path / "parts", 16, 100, 37) == -9
    assert on_devices(8, cached_program.__file__, tmp_path / "parts", 64, 60) == 0
    assert on_devices(1, cached_program.__file__, tmp_path / "parts", 0, 80) == 0
    assert on_devices(1, cached_program.__file__, tmp_path / "parts", 128, 100) == 0
    for devices, until in ((8, 60), (1, 100)):
        assert on_devices(devices, cached_program.__file__, tmp_path / "plain", 0, until) == 0
    assert saved(tmp_path / "parts") == saved(tmp_path / "plain")


@pytest.mark.slow
def test_two_processes_with_a_cache_killed_twice_and_continued_with_another_cache(tmp_path: Path) -> None:
    """The bits and the loss equal those of two processes without a cache.

    One of the two is killed after a save, twice.
    """
    program = str(Path(__file__).with_name("joined_program.py"))
    plain, cached = tmp_path / "plain", tmp_path / "cached"
    status, printed = joined(2, program, plain, 0, 33)
    assert (status, printed.startswith("loss ")) == (0, True)
    assert joined(2, program, cached, 16, 33, 17)[0] < 0
    assert joined(2, program, cached, 32, 33, 25)[0] < 0
    assert joined(2, program, cached, 8, 33) == (0, printed)
    assert saved(cached) == saved(plain)
