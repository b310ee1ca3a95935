"""Records which reader holds which checkpoint at a moment, according to the existing leases."""

from __future__ import annotations

from estimator_testing.simulation.disk import Change


class Holds:
    """Follows leases. An expired lease does not become valid again, because its reader was too late.

    Args:
        lease_seconds: the seconds for which a lease is valid.
    """

    def __init__(self, lease_seconds: float) -> None:
        self._lease_seconds = lease_seconds
        self._ends: dict[tuple[str, int], dict[str, float]] = {}
        self._held: set[tuple[tuple[str, int], str]] = set()

    def follow(self, change: Change) -> None:
        """Follows a change of an object below `leases`."""
        place = change.key.removeprefix("leases/").rpartition("/")[0]
        who = (change.process, change.life)
        ends = self._ends.setdefault(who, {})
        if change.data is None:
            ends.pop(place, None)
            self._held.discard((who, place))
        elif change.time < ends.get(place, change.time + 1):
            ends[place] = change.time + self._lease_seconds

    def begin(self, who: tuple[str, int], place: str) -> None:
        """Records that a reader has its lease, and knows that the checkpoint is kept."""
        self._held.add((who, place))

    def holds(self, who: tuple[str, int], place: str, time: float) -> bool:
        """Returns whether the lease of the reader is valid."""
        return (who, place) in self._held and time < self._ends.get(who, {}).get(place, 0.0)

    def holders(self, place: str, time: float) -> list[str]:
        """Returns the names of the readers with valid leases."""
        return sorted(who[0] for who, held in self._held if held == place and self.holds(who, place, time))
