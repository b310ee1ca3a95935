"""Named common ways to split a training step over devices, and a file that keeps one."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from estimator_core.backends import STAGES
from estimator_core.config import FullySharded
from estimator_core.errors import ArgumentError

Remat = Literal["none", "dots", "full"]
_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Preset:
    """RunConfig fields that belong together.

    Attributes:
        name: the name: "data", "zero1", "fsdp", "tensor", "fsdp+tensor", "pipeline", "pipeline+tensor".
        mesh: the axis sizes by name. -1 stands for the rest.
        sharded: the rule for all variables that no user rule matches. None: these variables stay whole.
        remat: the parts that the backward pass computes again.
        sends: the data that each device sends in a step, in words.
        accumulate_steps: the number of micro-batches of a step.
    """

    name: str
    mesh: Mapping[str, int]
    sharded: FullySharded | None
    remat: Remat = "none"
    sends: str = ""
    accumulate_steps: int = 1

    def run_config(self, partition_rules: Any = ()) -> dict[str, Any]:
        """Returns the fields, for `RunConfig(...)` or `config.replace(...)`.

        Args:
            partition_rules: the user's rules, which have priority.

        Example:
            >>> presets()["fsdp"].run_config()["mesh"]
            {'data': 1, 'fsdp': -1}
        """
        rest = [] if self.sharded is None else [(".*", self.sharded)]
        fields = {"mesh": dict(self.mesh), "partition_rules": [*partition_rules, *rest], "remat": self.remat}
        return fields if self.accumulate_steps == 1 else {**fields, "accumulate_steps": self.accumulate_steps}


def presets(slices: int = 1) -> dict[str, Preset]:
    """Returns the presets, by name.

    Args:
        slices: the number of groups of devices that only a network joins. Variables are not split across the network.

    Example:
        >>> list(presets())
        ['data', 'zero1', 'fsdp']
    """
    found = (
        Preset(
            name="data",
            mesh={"data": -1},
            sharded=None,
            sends="each gradient, reduced once: twice the variables",
        ),
        Preset(
            name="zero1",
            mesh={"data": -1},
            sharded=FullySharded(slots_only=True),
            sends="each gradient to where its slots are, and each variable back: twice the variables",
        ),
        Preset(
            name="fsdp",
            mesh={"data": slices, "fsdp": -1},
            sharded=FullySharded("fsdp"),
            sends="each variable for the forward and the backward pass, and each gradient: three times the variables",
        ),
    )
    return {preset.name: preset for preset in found}


def tensor_presets(axis: str, size: int, slices: int = 1) -> dict[str, Preset]:
    """Returns the presets that split a layer over an axis of the mesh, by name with the size of the axis.

    The program defines what is split along the axis: by `logical_axis_rules` of its RunConfig, or by partition rules.

    Args:
        axis: the axis of the mesh.
        size: the number of devices along it.
        slices: the number of groups of devices that only a network joins.

    Example:
        >>> [preset.mesh for preset in tensor_presets("model", 4).values()]
        [{'data': -1, 'model': 4}, {'data': 1, 'fsdp': -1, 'model': 4}]
    """
    between = "the activations between the devices that share a layer"
    found = (
        Preset(
            name=f"tensor {axis}={size}",
            mesh={"data": -1, axis: size},
            sharded=None,
            sends=f"{between}, and each gradient, reduced once: twice the variables of one part",
        ),
        Preset(
            name=f"fsdp+tensor {axis}={size}",
            mesh={"data": slices, "fsdp": -1, axis: size},
            sharded=FullySharded("fsdp"),
            sends=f"{between}, and three times the variables of one part",
        ),
    )
    return {preset.name: preset for preset in found}


def pipeline_presets(stages: int, axes: Mapping[str, int]) -> dict[str, Preset]:
    """Returns the presets with stages of layers, by name with the sizes of their axes.

    The program calls `pipelined`, and a partition rule such as `("layers/.*", ("stage",))` places the layers.

    Args:
        stages: the number of stages, which is the number of groups of devices that only a network joins.
        axes: the axes that split a layer inside a stage, with the number of devices along each.

    Example:
        >>> [preset.mesh for preset in pipeline_presets(2, {"model": 16}).values()]
        [{'stage': 2, 'data': -1}, {'stage': 2, 'data': -1, 'model': 16}]
    """
    between = "the activations of each example between stages, there and back"
    inside = "the activations between the devices that share a layer"
    found = [
        Preset(
            name=f"pipeline {STAGES}={stages}",
            mesh={STAGES: stages, "data": -1},
            sharded=None,
            sends=f"{between}, and in each round each gradient of a stage, reduced: twice its variables",
        ),
        *(
            Preset(
                name=f"pipeline+tensor {STAGES}={stages} {axis}={size}",
                mesh={STAGES: stages, "data": -1, axis: size},
                sharded=None,
                sends=f"{between}, {inside}, and in each round each gradient of one part of a stage",
            )
            for axis, size in axes.items()
        ),
    ]
    return {preset.name: preset for preset in found}


def check_place(file: str | Path) -> None:
    """Refuses a file that `save_preset` cannot write, or must not replace.

    Raises:
        ArgumentError: the directory is missing, or the file holds something other than a plan.
    """
    path = Path(file)
    if not path.absolute().parent.is_dir():
        raise ArgumentError(f"{path} cannot be written: there is no directory {path.parent}. Create it first.")
    if not path.exists():
        return
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else None  # opening a pipe would wait for a writer
    except (OSError, UnicodeDecodeError):
        text = None
    if text == "" or (text is not None and _is_plan(text)):
        return
    raise ArgumentError(f"{path} exists and is not a plan that `estimator plan --save` wrote; choose another name.")


def _is_plan(text: str) -> bool:
    try:
        return {"format", "name", "mesh"} <= tomllib.loads(text).keys()
    except tomllib.TOMLDecodeError:
        return False


def save_preset(preset: Preset, file: str | Path) -> None:
    """Writes a preset as TOML that a user can edit.

    Raises:
        ArgumentError: the file cannot be written, or it holds something other than a plan.
    """
    check_place(file)
    lines = [f"format = {_VERSION}", f'name = "{preset.name}"', f'remat = "{preset.remat}"']
    lines += [f"accumulate_steps = {preset.accumulate_steps}", "", "[mesh]"]
    lines += [f"{axis} = {size}" for axis, size in preset.mesh.items()]
    if preset.sharded is not None:
        given = {key: value for key, value in asdict(preset.sharded).items() if value not in (None, ())}
        lines += ["", "[sharded]", *(f"{key} = {json.dumps(value)}" for key, value in given.items())]
    try:
        Path(file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"{file} cannot be written: {error.strerror}.") from error


def load_preset(file: str | Path) -> Preset:
    """Reads a file of `save_preset` or `estimator plan --save`.

    Raises:
        ArgumentError: the file is not such a preset. The message states the reason.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_preset(presets()["zero1"], f"{folder}/plan.toml")
        ...     load_preset(f"{folder}/plan.toml").sharded
        FullySharded(axes=None, base=(), min_size=0, slots_only=True)
    """
    try:
        given = tomllib.loads(Path(file).read_text(encoding="utf-8"))
        if given["format"] != _VERSION:
            raise ArgumentError(f"{file}: format {given['format']!r} is not known; this release reads {_VERSION}.")
        sharded = given.get("sharded")
        return Preset(
            name=given["name"],
            mesh=given["mesh"],
            sharded=None if sharded is None else FullySharded(**sharded),
            remat=given.get("remat", "none"),
            accumulate_steps=given.get("accumulate_steps", 1),
        )
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ArgumentError(f"{file}: not a plan that `estimator plan --save` wrote: {error!r}.") from error
