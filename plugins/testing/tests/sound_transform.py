"""A sound host transform: it replaces each word by its position in a file."""

from pathlib import Path

import numpy as np


class Vocabulary:
    name, version = "vocabulary", 1

    def __init__(self, feature, words):
        self.feature = feature
        self.words = Path(words)
        self.ids = {word: i for i, word in enumerate(self.words.read_text().split())}

    def config(self):
        return {"feature": self.feature}

    @property
    def files(self):
        return {"words": self.words}

    def apply(self, batch):
        ids = np.array([self.ids.get(word, -1) for word in batch[self.feature]], np.int32)
        return {**batch, self.feature: ids}
