"""The pairs of programs that are proved, and the TensorFlow of the old ones."""

from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
PROOFS = HERE / "proofs"


class Pair(NamedTuple):
    """An old and a new function."""

    tensorflow: str
    program: str
    function: str
    names: str | None = None
    steps: int = 10

    @property
    def old(self) -> str:
        return f"{PROOFS / f'old_{self.program}.py'}:{self.function}"

    @property
    def new(self) -> str:
        return f"{PROOFS / f'new_{self.program}.py'}:{self.function}"

    @property
    def recorded(self) -> Path:
        """Two steps and one evaluation batch, by `nox -s proofs -- --write`."""
        return HERE / "recorded" / "proofs" / f"{self.program}_{self.function}"

    @property
    def options(self) -> list[str]:
        return ["--names", str(PROOFS / self.names)] if self.names else []


PAIRS = (
    Pair("2.15.1", "guide", "linear"),
    Pair("2.15.1", "guide", "deep"),
    Pair("2.15.1", "guide", "combined"),
    Pair("2.15.1", "guide", "keras", "names_keras.json"),
    # Adam divides a gradient by its size, so the rounding of a small one moves its weight by up to 3e-6 a step. The old
    # program draws other weights each time: ten steps ended at 5e-6 in one run and at 1.1e-5 in another.
    Pair("2.15.1", "two_tower_heads", "towers", steps=5),
    Pair("1.15.0", "paper", "custom"),
    Pair("1.15.0", "paper", "canned"),
    Pair("1.15.0", "mnist_experiment", "digits"),
    Pair("1.15.0", "bert_tpu", "tickets"),
)
#: What the ordinary tests go through: every other one has its recording for `-m slow`.
QUICK = (PAIRS[2], PAIRS[5])
