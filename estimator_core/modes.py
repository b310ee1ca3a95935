"""The modes with which a `model_fn` is called."""

from typing import Final, cast

__all__ = ["ModeKeys"]


class ModeKeys(str):
    """Names of the modes, as in tf.estimator.

    Each is a plain string. The class serves as its annotation (`mode: ec.ModeKeys`).

    Example:
        >>> ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT
        ('train', 'eval', 'infer')
    """

    TRAIN: Final = cast("ModeKeys", "train")
    EVAL: Final = cast("ModeKeys", "eval")
    PREDICT: Final = cast("ModeKeys", "infer")
    INFER: Final = PREDICT  # the name in tf.contrib.learn

    ALL: Final = (TRAIN, EVAL, PREDICT)
