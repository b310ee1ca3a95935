"""The handling of bad rows: the first one raises an error, or all are counted and reported."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from estimator_core.errors import InputError
from estimator_inputs.reading.blocks import BadRow

_log = logging.getLogger("estimator_inputs")
#: The largest number of bad rows per epoch that are logged one by one.
_SHOWN = 5


class BadRows:
    """Counts bad rows and reports them.

    Args:
        skip: whether bad rows are left out. Otherwise the first one raises an error.
        log: whether the first bad rows are logged one by one.

    Attributes:
        count: the number of bad rows since the start of the input.
    """

    def __init__(self, *, skip: bool, log: bool = True) -> None:
        self._skip = skip
        self._shown = _SHOWN if log else 0
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
        for row in bad[: max(self._shown - self._of_epoch, 0)]:
            _log.warning("Skipped %s.", row)
        self._of_epoch += len(bad)
        self.count += len(bad)

    def end_epoch(self, epoch: int, rows: int) -> None:
        """Reports the bad rows of an epoch. `rows` is the number of good rows that this process read."""
        if self._of_epoch:
            _log.warning("Skipped %d bad rows in epoch %d and read %d good ones.", self._of_epoch, epoch, rows)
        self._of_epoch = 0
