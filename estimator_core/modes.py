"""The modes a `model_fn` is called in."""

from typing import Final

__all__ = ["ModeKeys"]


class ModeKeys:
    """Names of the modes, as in tf.estimator.

    Example:
        >>> ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT
        ('train', 'eval', 'infer')
    """

    TRAIN: Final = "train"
    EVAL: Final = "eval"
    PREDICT: Final = "infer"
    INFER: Final = "infer"  # its name in tf.contrib.learn

    ALL: Final = ("train", "eval", "infer")
