"""The partition rules of the variables of the encoder."""

from __future__ import annotations

from typing import TypeAlias

#: `(regex of the whole name, axes)`, the form of `RunConfig.partition_rules`. The first match decides.
Rules: TypeAlias = list[tuple[str, tuple[str | None, ...]]]

# The first kernels are split along their outputs and the others along their inputs, so a layer needs two reductions.
_COLUMNS = r".*/(query|key|value|intermediate/dense)"
_ROWS = r".*/(attention(_1)?/output/dense|layer_\d+/output/dense|ffn_1/intermediate/output/dense)"


def tensor_parallel_rules(axis: str = "model", *, data_axis: str | None = None) -> Rules:
    """Returns rules that split heads and feed-forward columns over `axis`.

    Args:
        axis: the mesh axis for the model.
        data_axis: the mesh axis for the other axis of each kernel (fully sharded and tensor parallel). None: not split.

    Example:
        >>> tensor_parallel_rules()[0]
        ('.*/(query|key|value|intermediate/dense)/kernel', (None, 'model'))

    Source: Shoeybi et al., Megatron-LM (2019).
    """
    return [
        (rf"{_COLUMNS}/kernel", (data_axis, axis)),
        (rf"{_COLUMNS}/bias", (axis,)),
        (rf"{_ROWS}/kernel", (axis, data_axis)),
        (r".*/word_embeddings", (axis, data_axis)),
        *(fully_sharded_rules(data_axis) if data_axis else []),
    ]


def fully_sharded_rules(axis: str = "data") -> Rules:
    """Returns rules that split every matrix along its first axis over `axis`, and with it the slots of the optimizer.

    Example:
        >>> import re
        >>> [re.fullmatch(rule, "bert/pooler/dense/kernel") is not None for rule, _ in fully_sharded_rules()]
        [True, False]

    Source: Rajbhandari et al., ZeRO (2019).
    """
    return [(r".*/kernel", (axis,)), (r".*_embeddings", (axis,))]
