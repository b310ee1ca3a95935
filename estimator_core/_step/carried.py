"""Tables that training carries in a form defined by their access, for example with a cache of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax

from estimator_core._step import sparse
from estimator_core._step.optimizer import MemberState
from estimator_core._step.state import TrainState
from estimator_core._types import PyTree

_Change = Callable[[str, Any, Any], tuple[Any, Any]]


class CarriedTables:
    """A packing. Training programs accept and return the carried form, and all other code sees tables and slots.

    Args:
        forms: the carried form of each table, by the name of its variable.
    """

    def __init__(self, forms: Mapping[str, sparse.CarriedForm]) -> None:
        self._forms = forms
        self._placed: dict[str, tuple[Any, Any]] = {}

    def fits(self, state: TrainState) -> bool:
        """Returns whether a state has the slots of training."""
        return any(isinstance(member, MemberState) for member in state.opt_state)

    def holds(self, carried: object) -> bool:
        """Returns whether a state is carried in this form."""
        return isinstance(carried, TrainState) and self.fits(carried)

    def pack(self, state: TrainState) -> TrainState:
        """Returns the carried form of a state."""
        packed = _changed(state, self._forms, lambda name, *table: self._forms[name].opened(*table))
        _changed(packed, self._forms, self._note)
        return packed

    def settled(self, carried: TrainState) -> TrainState:
        """Returns the same form, from which `unpack` returns the results of the newest step.

        The argument is consumed.
        """
        return _changed(carried, self._forms, lambda name, *table: self._forms[name].settled(*table))

    def unpack(self, settled: TrainState) -> TrainState:
        """Returns the state. Its arrays are those of the settled form."""
        return _changed(settled, self._forms, lambda name, *table: self._forms[name].closed(*table))

    def shardings(self, of_state: TrainState) -> TrainState:
        """Returns the shardings of the last packed form, from those of a state."""
        return _changed(of_state, self._forms, lambda name, *_: self._placed[name])

    def _note(self, name: str, table: PyTree, slots: PyTree) -> tuple[PyTree, PyTree]:
        self._placed[name] = jax.tree.map(lambda leaf: leaf.sharding, (table, slots))
        return table, slots


def _changed(state: TrainState, names: Mapping[str, object], change: _Change) -> TrainState:
    """Returns the state with changed tables and slots."""
    variables, members = dict(state.variables), list[Any]()
    for member in state.opt_state:
        slots = dict(member.tables) if isinstance(member, MemberState) else {}
        for name in names.keys() & slots:
            variables[name], slots[name] = change(name, variables[name], slots[name])
        members.append(member._replace(tables=slots) if slots else member)
    return state._replace(variables=variables, opt_state=tuple(members))
