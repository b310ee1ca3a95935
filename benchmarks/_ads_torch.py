"""PyTorch with a DataLoader in a separate process, for `file_to_model.py`: a model from a file for each line read.

python _ads_torch.py chunks|rows train=FILE held_out=FILE rows=N result=FILE

"chunks": pandas reads 51,200 rows at once and hashes whole columns, and one worker of the DataLoader sends batches.
"rows": the module csv reads a row at a time, and the DataLoader collates them.
"""

import csv
import sys
import zlib

import _ads
import numpy as np
import pandas as pd
import torch
from torch import nn

WORDS = ("site", "device", "user")
KINDS = {**dict.fromkeys(_ads.NUMBERS, "float32"), "age": "int64", "label": "float32", **dict.fromkeys(WORDS, "str")}


class Chunks(torch.utils.data.IterableDataset):
    """Yields batches from chunks of a data frame."""

    def __init__(self, path):
        self._path = path

    def __iter__(self):
        for frame in pd.read_csv(self._path, dtype=KINDS, chunksize=100 * _ads.BATCH):
            numbers = torch.from_numpy(frame[list(_ads.NUMBERS)].to_numpy(np.float32, copy=True))
            hashed = pd.util.hash_array(frame["user"].to_numpy(object), categorize=True)
            pairs = pd.util.hash_array((frame["site"] + "_" + frame["device"]).to_numpy(object), categorize=True)
            ids = {
                "age": np.searchsorted(_ads.AGES, frame["age"].to_numpy(), side="right"),
                "site": pd.Categorical(frame["site"], _ads.SITES).codes.astype(np.int64) % (len(_ads.SITES) + 1),
                "device": pd.Categorical(frame["device"], _ads.DEVICES).codes.astype(np.int64),
                "user": (hashed % np.uint64(_ads.USER_BUCKETS)).astype(np.int64),
                "cross": (pairs % np.uint64(_ads.CROSS_BUCKETS)).astype(np.int64),
            }
            tensors = {name: torch.from_numpy(values) for name, values in ids.items()}
            labels = torch.from_numpy(frame["label"].to_numpy(np.float32, copy=True))
            for start in range(0, len(frame), _ads.BATCH):
                part = slice(start, start + _ads.BATCH)
                features = {name: values[part] for name, values in tensors.items()}
                yield {"numbers": numbers[part], **features}, labels[part]


class Rows(torch.utils.data.IterableDataset):
    """Yields one example at a time."""

    def __init__(self, path):
        self._path = path
        self._sites = {word: index for index, word in enumerate(_ads.SITES)}
        self._devices = {word: index for index, word in enumerate(_ads.DEVICES)}

    def __iter__(self):
        with open(self._path, newline="") as file:
            for row in csv.DictReader(file):
                yield (
                    {
                        "numbers": np.array([float(row[name]) for name in _ads.NUMBERS], np.float32),
                        "age": int(np.searchsorted(_ads.AGES, int(row["age"]), side="right")),
                        "site": self._sites.get(row["site"], len(_ads.SITES)),
                        "device": self._devices[row["device"]],
                        "user": zlib.crc32(row["user"].encode()) % _ads.USER_BUCKETS,
                        "cross": zlib.crc32(f"{row['site']}_{row['device']}".encode()) % _ads.CROSS_BUCKETS,
                    },
                    np.float32(row["label"]),
                )


def loader(kind, path):
    """Returns the loader that feeds the model."""
    if kind == "chunks":
        return torch.utils.data.DataLoader(Chunks(path), batch_size=None, num_workers=1)
    return torch.utils.data.DataLoader(Rows(path), batch_size=_ads.BATCH, num_workers=1)


class WideAndDeep(nn.Module):
    """Tables with sparse gradients, so that a step touches only the rows of its batch."""

    def __init__(self):
        super().__init__()
        sizes = {"age": len(_ads.AGES) + 1, "site": len(_ads.SITES) + 1}
        sizes |= {"user": _ads.USER_BUCKETS, "cross": _ads.CROSS_BUCKETS}
        self.wide = nn.ModuleDict({name: nn.Embedding(size, 1, sparse=True) for name, size in sizes.items()})
        for table in self.wide.values():
            nn.init.zeros_(table.weight)
        self.site = nn.Embedding(sizes["site"], _ads.SITE_WIDTH, sparse=True)
        self.user = nn.Embedding(sizes["user"], _ads.USER_WIDTH, sparse=True)
        for table in (self.site, self.user):
            nn.init.trunc_normal_(table.weight, std=table.embedding_dim**-0.5)
        layers, width = [], len(_ads.NUMBERS) + _ads.SITE_WIDTH + _ads.USER_WIDTH + len(_ads.DEVICES)
        for hidden in _ads.HIDDEN:
            layers += [nn.Linear(width, hidden), nn.ReLU()]
            width = hidden
        self.deep = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, x):
        device = nn.functional.one_hot(x["device"], len(_ads.DEVICES)).float()
        deep = self.deep(torch.cat([x["numbers"], self.site(x["site"]), self.user(x["user"]), device], 1))
        return (deep + sum(table(x[name]) for name, table in self.wide.items()))[:, 0]


def held_out_loss(model, kind, path):
    """Returns the mean loss over the rows."""
    total = rows = 0
    with torch.no_grad():
        for features, labels in loader(kind, path):
            lost = nn.functional.binary_cross_entropy_with_logits(model(features), labels, reduction="sum")
            total, rows = total + float(lost), rows + len(labels)
    return total / rows


def main():
    kind, given = sys.argv[1], dict(item.split("=", 1) for item in sys.argv[2:])
    rows = int(given["rows"])
    for _ in sys.stdin:
        torch.manual_seed(1)
        noted = _ads.Pass()
        model = WideAndDeep()
        optimizer = torch.optim.Adagrad(model.parameters(), lr=_ads.RATE, initial_accumulator_value=0.1)
        for step, (features, labels) in enumerate(loader(kind, given["train"]), 1):
            optimizer.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(model(features), labels).backward()
            optimizer.step()
            if step == _ads.later_step(rows):
                noted.later()
        figures = noted.end(rows)
        _ads.answer(given["result"], figures, lambda model=model: held_out_loss(model, kind, given["held_out"]))
        print("done", flush=True)


if __name__ == "__main__":
    main()
