"""The suite for inputs."""

from __future__ import annotations

import collections
import hashlib
import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax
import numpy as np
import pytest

from estimator_core.inputs import Batch, BatchSource, InputContext, InputPosition, open_input
from estimator_core.modes import ModeKeys
from estimator_testing.leaks import leaving_nothing, loading
from estimator_testing.other_seed import same_under_another_seed
from estimator_testing.suite import Suite

ENOUGH = 1000


class InputSuite(Suite):
    """Proves that an input can be repeated, resumed and divided. Subclass it and implement `make`.

    Example:
        >>> from estimator_core.inputs import numpy_input_fn
        >>> class TestMyInput(InputSuite):
        ...     def make(self):
        ...         return numpy_input_fn({"x": np.arange(10.0)}, np.arange(10), batch_size=4, shuffle=True)
    """

    #: False for an input that does not divide itself by `input_context`, so that every process reads everything.
    shards: ClassVar[bool] = True

    #: True for an input whose fingerprint contains the path of its files, which differs in every test.
    fingerprint_names_place: ClassVar[bool] = False

    def make(self) -> Callable[..., Any]:
        """Returns an input_fn of one epoch and at least three batches, with the same data each time."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self)")

    def epochs(self, count: int) -> Callable[..., Any] | None:
        """Returns an input_fn of `count` epochs of the same data. Override it if the input counts epochs itself."""
        return None

    def test_ends(self) -> None:
        """It yields at least three batches and then ends. Its position then shows that it is exhausted."""
        source = self._open()
        batches = list(itertools.islice(source, ENOUGH))
        assert len(batches) >= 3, f"{len(batches)} batches; the other tests need at least three"
        assert len(batches) < ENOUGH, "the input does not end; make it of one epoch"
        assert source.position is not None
        assert source.position.exhausted
        source.close()

    def test_can_be_called_again(self) -> None:
        """Every call of the input_fn, and of another one from `make`, yields the same batches from the start."""
        input_fn = self.make()
        first = self._read(input_fn)
        assert_same_batches(self._read(input_fn), first, "called again, the input_fn yields other batches")
        assert_same_batches(self._read(self.make()), first, "another input_fn from `make` yields other batches")

    def test_two_readers_do_not_meet(self) -> None:
        """Two iterators that are drawn in turns yield the same batches as one alone."""
        input_fn = self.make()
        alone = self._read(input_fn)
        one, other = self._open(input_fn), self._open(input_fn)
        pairs = list(zip(one, other, strict=False))
        assert_same_batches([batch for batch, _ in pairs], alone, "drawn in turns with another reader")
        one.close()
        other.close()

    def test_batches_keep_their_structure(self) -> None:
        """All batches have the same features, dtypes and trailing shapes."""
        forms = [jax.tree.map(_form, _arrays(batch)) for batch in self._read()]
        assert all(form == forms[0] for form in forms), f"the form changes from batch to batch: {forms[:3]}"

    def test_batches_stay_as_they_were(self) -> None:
        """A batch does not change when the next ones are drawn, because the device may still read it."""
        source = self._open()
        held = [(batch, jax.tree.map(np.copy, _arrays(batch))) for batch in source]
        for number, (batch, copy) in enumerate(held):
            for now, then in zip(jax.tree.leaves(_arrays(batch)), jax.tree.leaves(copy), strict=True):
                np.testing.assert_array_equal(now, then, f"batch {number} changed after it was drawn")
        source.close()

    def test_position_counts_examples(self) -> None:
        """The position after each batch counts the batches and examples so far, and survives JSON."""
        examples = 0
        for number, batch in enumerate(self._read(), start=1):
            examples += batch.size
            assert (batch.position.batches, batch.position.examples) == (number, examples)
            assert InputPosition.from_json(json.loads(json.dumps(batch.position.to_json()))) == batch.position

    def test_resumes_anywhere(self) -> None:
        """Opened at the position after any batch, it continues with the next one, bit for bit."""
        batches = self._read()
        for number, batch in enumerate(batches[:-1], start=1):
            position = InputPosition.from_json(json.loads(json.dumps(batch.position.to_json())))
            source = open_input(self.make(), mode="train", position=position)
            rest = list(itertools.islice(source, ENOUGH))
            assert_same_batches(rest, batches[number:], f"resumed after batch {number} ({source.restored})")
            assert [one.position for one in rest] == [one.position for one in batches[number:]]
            source.close()

    def test_fingerprint_is_stable(self) -> None:
        """Equal inputs have the same fingerprint, because a position identifies its input by it."""
        first, second = self._read()[0].position, self._read()[0].position
        assert first.fingerprint == second.fingerprint
        assert first.fingerprint.strip()

    def test_shards_share_the_examples_out(self) -> None:
        """Two processes together get every example once, and neither gets all of them.

        A batch that does not divide by two, which both processes get entirely, counts for the first process.
        """
        everything = _rows(self._read())
        contexts = [InputContext(num_input_pipelines=2, input_pipeline_id=number) for number in range(2)]
        first, second = (self._read(context=context) for context in contexts)
        parts = [_rows(first), _rows([batch for batch in second if not _is_whole(batch)])]
        if not self.shards:
            assert parts[0] == parts[1] == everything, "shards is False, yet the input divides itself"
            return
        assert all(parts), "one of two processes gets nothing"
        assert parts[0] + parts[1] == everything, "two processes together do not get every example once"

    def test_the_second_epoch(self) -> None:
        """Two epochs yield each example of one epoch twice, and the second can be resumed anywhere."""
        if self.epochs(2) is None:
            pytest.skip("epochs(self, count) is not defined")
        batches = self._read(self.epochs(2))
        once = _rows(self._read())
        assert _rows(batches) == once + once, "two epochs do not yield each example of one epoch twice"
        half = len(batches) // 2
        for number in sorted({half - 1, half, half + 1, len(batches) - 1}):
            source = open_input(self.epochs(2) or self.make(), mode="train", position=batches[number - 1].position)
            rest = list(itertools.islice(source, ENOUGH))
            assert_same_batches(rest, batches[number:], f"resumed after batch {number} of two epochs")
            source.close()

    def test_evaluates_and_predicts(self) -> None:
        """When it is opened for an evaluation or a prediction, it also ends, and yields the same batches again."""
        for mode in (ModeKeys.EVAL, ModeKeys.PREDICT):
            first, second = (self._read(mode=mode) for _ in range(2))
            assert first, f"in mode {mode!r} it yields nothing"
            assert len(first) < ENOUGH, f"in mode {mode!r} it does not end"
            assert_same_batches(second, first, f"opened again in mode {mode!r}")

    def test_another_hash_seed(self, request: pytest.FixtureRequest) -> None:
        """With another seed of string hashes, as in the next process, order and fingerprint are the same."""
        batches = self._read()
        named = "" if self.fingerprint_names_place else batches[0].position.fingerprint
        same_under_another_seed(request, [[_digest(batch) for batch in batches], named])

    def test_closing_leaves_nothing_behind(self) -> None:
        """After a close, in the middle or at the end, no thread runs, no file is open, and the random generators of
        the process are as before. The input can be opened again.
        """
        input_fn = self.make()
        with loading():
            self._read(input_fn)
        with leaving_nothing("closed in the middle, the input"):
            source = self._open(input_fn)
            next(source)
            source.close()
        with leaving_nothing("read to its end, the input"):
            source = self._open(input_fn)
            collections.deque(itertools.islice(source, ENOUGH), maxlen=0)
            source.close()
        assert self._read(input_fn)

    def _open(self, input_fn: Callable[..., Any] | None = None) -> BatchSource:
        return open_input(input_fn or self.make(), mode="train")

    def _read(
        self,
        input_fn: Callable[..., Any] | None = None,
        context: InputContext | None = None,
        mode: str = ModeKeys.TRAIN,
    ) -> list[Batch]:
        source = open_input(input_fn or self.make(), mode=mode, input_context=context)
        batches = list(itertools.islice(source, ENOUGH))
        source.close()
        return batches


def assert_same_batches(actual: list[Batch], expected: list[Batch], message: str) -> None:
    """Compares batches bit for bit."""
    assert len(actual) == len(expected), f"{message}: {len(actual)} batches, expected {len(expected)}"
    for number, (one, other) in enumerate(zip(actual, expected, strict=True)):
        assert jax.tree.structure(_arrays(one)) == jax.tree.structure(_arrays(other)), message
        for value, wanted in zip(jax.tree.leaves(_arrays(one)), jax.tree.leaves(_arrays(other)), strict=True):
            np.testing.assert_array_equal(value, wanted, f"{message}: batch {number}")


def _arrays(batch: Batch) -> Mapping[str, Any]:
    return {"features": batch.features, "labels": batch.labels, "host": dict(batch.host)}


def _digest(batch: Batch) -> str:
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(_arrays(batch))]
    return hashlib.sha256(repr([leaf.tolist() for leaf in leaves]).encode()).hexdigest()[:12]


def _is_whole(batch: Batch) -> bool:
    return batch.total is not None and jax.tree.leaves(_arrays(batch))[0].shape[0] == batch.total


def _form(array: Any) -> tuple[str, tuple[int, ...]]:
    return str(array.dtype), array.shape[1:]


def _rows(batches: list[Batch]) -> collections.Counter[bytes]:
    """Returns how often each example occurs, without padding rows."""
    counts: collections.Counter[bytes] = collections.Counter()
    for batch in batches:
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(_arrays(batch))]
        for row in range(leaves[0].shape[0]):
            if batch.weights is None or batch.weights[row]:
                counts[repr([np.asarray(leaf[row]).tolist() for leaf in leaves]).encode()] += 1
    return counts
