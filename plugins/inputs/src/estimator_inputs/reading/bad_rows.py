"""The handling of bad rows: the first one raises an error, or all are counted and reported."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from estimator_core.errors import InputError
from estimator_inputs.reading.blocks import BadRow

_log = logging.getLogger("estimator_inputs")
#: The largest number of bad rows of an input that are logged one by one.
_SHOWN = 5


class BadRowLog:
    """Logs the bad rows of an input once, because every epoch and every evaluation finds the same ones."""

    def __init__(self) -> None:
        self._rows: set[str] = set()
        self._epochs: set[tuple[int, int]] = set()

    def show(self, rows: Sequence[BadRow]) -> None:
        """Logs the first rows of the input that are bad, one by one."""
        for row in map(str, rows[:_SHOWN]):
            if row not in self._rows and len(self._rows) < _SHOWN:
                self._rows.add(row)
                _log.warning("Skipped %s.", row)

    def end_epoch(self, epoch: int, bad: int, good: int) -> None:
        """Logs how many rows of an epoch are bad, unless an earlier epoch had the same numbers."""
        if bad and (bad, good) not in self._epochs:
            self._epochs.add((bad, good))
            _log.warning("Skipped %d bad rows in epoch %d and read %d good ones.", bad, epoch, good)


class BadRows:
    """Counts bad rows and reports them.

    Args:
        skip: whether bad rows are left out. Otherwise the first one raises an error.
        log: the log of the input. None: nothing is logged.

    Attributes:
        count: the number of bad rows since the start of the input.
    """

    def __init__(self, *, skip: bool, log: BadRowLog | None) -> None:
        self._skip = skip
        self._log = log
        self._of_epoch = 0
        self.count = 0

    def begin(self, before_epoch: int, *, of_epoch: int) -> None:
        """Continues from the counts of a position."""
        self._of_epoch = of_epoch
        self.count = before_epoch + of_epoch

    @property
    def before_epoch(self) -> int:
        """The number of bad rows in the earlier epochs."""
        return self.count - self._of_epoch

    def add(self, bad: Sequence[BadRow]) -> None:
        """Adds the bad rows of a block.

        Raises:
            InputError: there is a bad row, and bad rows are not skipped.
        """
        if not bad:
            return
        if not self._skip:
            raise InputError(f'{bad[0]}. Correct the file, or leave such rows out with on_error="skip".')
        if self._log is not None:
            self._log.show(bad)
        self._of_epoch += len(bad)
        self.count += len(bad)

    def end_epoch(self, epoch: int, rows: int) -> None:
        """Reports the bad rows of an epoch. `rows` is the number of good rows that this process read."""
        if self._log is not None:
            self._log.end_epoch(epoch, self._of_epoch, rows)
        self._of_epoch = 0
