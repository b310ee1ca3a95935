"""BERT and ALBERT for estimator-core: encoder, model_fn, classifier, text inputs, weights in and out.

The import of this package does not import its modules: each public name is imported when it is first used.
`__init__.pyi` is the typed list of the names.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "classifier": ("BertClassifier",),
    "config": ("BertConfig",),
    "early_stop": ("StopWithoutImprovement",),
    "encoder": ("EncoderOptions", "Encoded", "encode", "encoder_shapes"),
    "encoder.model": ("BertModel",),
    "encoder.partition": ("fully_sharded_rules", "tensor_parallel_rules"),
    "lora": ("LoraConfig", "merge_lora"),
    "model_fn": ("bert_model_fn_builder",),
    "optimization": ("Optimization", "create_optimizer", "warmup_linear_decay"),
    "text": ("BertTokens", "ClassifierData", "Split", "Tokenizer", "build_vocabulary"),
    "tasks": ("Classification", "Regression", "Task"),
    "weights": (
        "get_assignment_map_from_checkpoint",
        "init_from_pretrained",
        "read_checkpoint",
        "save_pretrained",
    ),
    "weights.transformers": ("TransformersCheckpoint",),
}
_MODULE_OF = {name: f"{__name__}.{module}" for module, names in _HOME.items() for name in names}
__all__ = list(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
