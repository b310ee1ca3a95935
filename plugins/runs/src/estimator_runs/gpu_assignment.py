"""The GPUs that each of several workers on a machine uses. Alone, jax takes all, and most of their memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

_VISIBLE, _FRACTION = "CUDA_VISIBLE_DEVICES", "XLA_PYTHON_CLIENT_MEM_FRACTION"
_DRIVER = "/proc/driver/nvidia/gpus"
_MOST = 0.9  # the share of the memory of a card


def visible_cards(environ: Mapping[str, str], driver: str = _DRIVER) -> Sequence[str]:
    """Returns the GPUs that a process may use, by the names for CUDA_VISIBLE_DEVICES.

    Args:
        environ: the environment of the process.
        driver: the directory in which the driver lists its cards.

    Example:
        >>> visible_cards({"CUDA_VISIBLE_DEVICES": "1, 3"}), visible_cards({}, driver="/no/such/directory")
        (['1', '3'], [])
    """
    said = environ.get(_VISIBLE)
    if said is not None:
        return [card.strip() for card in said.split(",") if card.strip()]
    return [str(place) for place in range(len(list(Path(driver).glob("*"))))]


def cards_of_worker(index: int, count: int, environ: Mapping[str, str], driver: str = _DRIVER) -> dict[str, str]:
    """Returns the variables that assign a worker its own cards, or a share of the memory of one card.

    Args:
        index: the index of the worker.
        count: the number of workers on this machine.
        environ: the environment of all of them.
        driver: see `visible_cards`.

    Returns:
        The variables of the environment; empty if there are no cards.

    Example:
        >>> cards_of_worker(1, 2, {"CUDA_VISIBLE_DEVICES": "4,5,6,7"})
        {'CUDA_VISIBLE_DEVICES': '6,7'}
        >>> cards_of_worker(1, 2, {"CUDA_VISIBLE_DEVICES": "4"})
        {'CUDA_VISIBLE_DEVICES': '4', 'XLA_PYTHON_CLIENT_MEM_FRACTION': '0.45'}
    """
    cards = visible_cards(environ, driver)
    if not cards:
        return {}
    if len(cards) >= count:
        share = len(cards) // count
        return {_VISIBLE: ",".join(cards[index * share : (index + 1) * share])}
    place = index % len(cards)
    beside = len(range(place, count, len(cards)))
    memory = {} if _FRACTION in environ else {_FRACTION: f"{_MOST / beside:.2g}"}
    return {_VISIBLE: cards[place], **memory}


def cards_of_process(told: Sequence[int] | None, environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that restrict a process of a job to the cards that its launcher has assigned.

    Args:
        told: `Processes.local_device_ids`.
        environ: the environment of the process.

    Returns:
        The variables of the environment; empty if no card is assigned, or this machine does not have it.

    Example:
        >>> cards_of_process((1,), {"CUDA_VISIBLE_DEVICES": "4,5"})
        {'CUDA_VISIBLE_DEVICES': '5'}
    """
    if told is None:
        told = [int(one) for one in environ.get("JAX_LOCAL_DEVICE_IDS", "").split(",") if one.strip()]
    cards = visible_cards(environ)
    if not told or max(told) >= len(cards):
        return {}
    return {_VISIBLE: ",".join(cards[one] for one in told)}
