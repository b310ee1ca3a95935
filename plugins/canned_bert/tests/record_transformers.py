"""Records what transformers computes for the cases of `parity_cases.py`. Needs torch and transformers 4.

    python record_transformers.py [--check]

`recorded/transformers/<case>.safetensors` holds `logits`, `loss`, `gradient/<name>`, and `after/<name>`: the weights
after twenty steps of AdamW (epsilon 1e-6, weight decay 0.01 but not on biases and LayerNorm, linear warm-up over four
steps and linear decay, gradients clipped to norm 1).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from parity_cases import BATCH, CASES, EPSILON, LARGE, RATE, STEPS, WARMUP, WEIGHT_DECAY, batch, config_of, weight
from safetensors.numpy import load_file, save_file

RECORDED = Path(__file__).parent / "recorded" / "transformers"


def model_of(case):
    values = config_of(case)
    kind = values.pop("model_type")
    config_class, model_class = {
        "bert": (transformers.BertConfig, transformers.BertForSequenceClassification),
        "albert": (transformers.AlbertConfig, transformers.AlbertForSequenceClassification),
    }[kind]
    config = config_class(**values, num_labels=case["labels"], attn_implementation="eager")
    model = model_class(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(weight(name, tuple(parameter.shape))))
    return model.train()


def forward(model, inputs):
    label_type = torch.float32 if inputs["labels"].dtype == np.float32 else torch.long
    return model(
        input_ids=torch.from_numpy(inputs["ids"]).long(),
        attention_mask=torch.from_numpy(inputs["mask"]).long(),
        token_type_ids=torch.from_numpy(inputs["segments"]).long(),
        labels=torch.from_numpy(inputs["labels"]).to(label_type),
    )


def record(name, case):
    model = model_of(case)
    output = forward(model, batch(case, 0))
    found = {"logits": output.logits.detach().numpy(), "loss": output.loss.detach().numpy()}
    if name in LARGE:
        return found
    output.loss.backward()
    found |= {f"gradient/{key}": value.grad.numpy().copy() for key, value in model.named_parameters()}
    model.zero_grad()
    train(model, case)
    return found | {f"after/{key}": value.detach().numpy() for key, value in model.named_parameters()}


def train(model, case):
    named = list(model.named_parameters())
    norms_and_biases = [value for key, value in named if "bias" in key or "norm" in key.lower()]
    known = {id(value) for value in norms_and_biases}
    decayed = [value for _, value in named if id(value) not in known]
    groups = [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": norms_and_biases, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, eps=EPSILON)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, WARMUP, STEPS)
    for step in range(STEPS):
        forward(model, batch(case, step)).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


def same(one, other):
    return one is not None and other is not None and np.allclose(one, other, rtol=1e-4, atol=1e-6)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with what is committed")
    check = parser.parse_args().check
    torch.manual_seed(0)
    torch.set_num_threads(1)
    wrong = 0
    for name, case in CASES.items():
        found = {key: np.ascontiguousarray(value, np.float32) for key, value in record(name, case).items()}
        path = RECORDED / f"{name}.safetensors"
        if not check:
            RECORDED.mkdir(parents=True, exist_ok=True)
            versions = {"torch": torch.__version__, "transformers": transformers.__version__, "batch": str(BATCH)}
            save_file(found, path, metadata={"versions": json.dumps(versions)})
            continue
        known = load_file(path)
        far = [key for key in {*known, *found} if not same(known.get(key), found.get(key))]
        wrong += bool(far)
        print(f"{name}: {f'differs in {far[:5]}' if far else 'as recorded'}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
