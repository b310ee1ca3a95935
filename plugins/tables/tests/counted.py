"""A growing vocabulary in plain Python: the expected behaviour of the device, one id after the other."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np

from estimator_tables.vocabulary import CANDIDATES_PER_BUCKET, ROWS_PER_BUCKET
from estimator_tables.wide_ids import WideIds


def words(ids: np.ndarray) -> np.ndarray:
    return WideIds(["id"]).apply({"id": ids})["id"]


@dataclass
class Slot:
    id: int | None = None
    count: int = 0
    seen: int = 0


@dataclass
class Counted:
    """A vocabulary with the rules of `grown`."""

    buckets: int
    admit_at: int
    max_age: int
    clock: int = 0
    slots: dict[int, list[Slot]] = field(default_factory=dict)

    def batch(self, ids: np.ndarray, bucket_of: dict[int, int]) -> list[int]:
        """The rows of ids after a batch."""
        self.clock += 1
        spare = CANDIDATES_PER_BUCKET * (self.admit_at > 1)
        distinct = sorted({int(each) for each in ids if each != -1}, key=lambda each: (bucket_of[each], _order(each)))
        for each in distinct:  # known ids are seen before any id is admitted
            slot = self._slot(each, bucket_of)
            if slot is not None:
                slot.seen = self.clock
        for kind in ("row", "candidate"):
            for each in distinct:
                self._place(each, int(np.sum(ids == each)), kind, bucket_of, spare)
        return [-1 if each == -1 else self._row(int(each), bucket_of) for each in ids]

    def _place(self, each: int, occurrences: int, kind: str, bucket_of: dict[int, int], spare: int) -> None:
        slots = self.slots.setdefault(bucket_of[each], [Slot() for _ in range(ROWS_PER_BUCKET + spare)])
        old = self._slot(each, bucket_of)
        if kind == "row":
            total = occurrences + (old.count if old else 0)
            if old is not None:
                old.count = total
            if total < self.admit_at or any(old is slot for slot in slots[:ROWS_PER_BUCKET]):
                return
            able = [s for s in slots[:ROWS_PER_BUCKET] if s.count == 0 or self.clock - s.seen > self.max_age]
        elif old is not None:
            return
        else:
            total = occurrences
            able = [s for s in slots[ROWS_PER_BUCKET:] if s.seen < self.clock]  # one left now is free in the next batch
        if not able:
            return
        chosen = min(able, key=lambda slot: -1 if slot.count == 0 else slot.seen)
        chosen.id, chosen.count, chosen.seen = each, total, self.clock
        if old is not None and old is not chosen:
            old.count, old.seen = 0, self.clock

    def _slot(self, each: int, bucket_of: dict[int, int]) -> Slot | None:
        return next((s for s in self.slots.get(bucket_of[each], []) if s.id == each and s.count), None)

    def _row(self, each: int, bucket_of: dict[int, int]) -> int:
        slots = self.slots.get(bucket_of[each], [])[:ROWS_PER_BUCKET]
        place = next((p for p, s in enumerate(slots) if s.id == each and s.count), None)
        return 0 if place is None else bucket_of[each] * ROWS_PER_BUCKET + place


def _order(each: int) -> tuple[int, int]:
    high, low = words(np.array([each]))[0]
    return int(high), int(low)


def as_device(ids: np.ndarray) -> jnp.ndarray:
    return jnp.asarray(words(ids))
