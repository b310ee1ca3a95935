"""The typed schema of configuration files."""

from __future__ import annotations

from dataclasses import MISSING, fields
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_type_hints

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model

from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentTypeError

#: The word for None, because TOML has no null.
NONE = "none"


class Part(BaseModel):
    """A table whose keys are all known. Values are not converted to other types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, protected_namespaces=())


def _none(value: Any) -> Any:
    return None if value == NONE else value


#: A field that a later layer may reset with "none".
OrNone = BeforeValidator(_none)


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class Component(Part):
    """A component of a plugin by its name, with arguments. The name alone is enough."""

    name: str
    args: dict[str, Any] = {}


Named = Annotated[Component, BeforeValidator(_named)]


class ProgramFile(Part):
    """A Python file with `experiment_fn(run_config, hparams)`."""

    file: str
    function: str = "experiment_fn"


class Model(Part):
    """A registered model, or a model_fn as `module:function`."""

    component: str | None = None
    function: str | None = None
    args: dict[str, Any] = {}


class Input(Part):
    """A registered input, a function whose call returns an input_fn, or an input_fn itself."""

    component: str | None = None
    call: str | None = None
    function: str | None = None
    args: dict[str, Any] = {}


class Inputs(Part):
    """The inputs of an experiment."""

    train: Input
    eval: Annotated[Input | None, OrNone] = None


class Train(Part):
    """The plan of training."""

    max_steps: Annotated[Annotated[int, Field(ge=1)] | None, OrNone] = None


class Evaluate(Part):
    """The plan of evaluations."""

    steps: Annotated[Annotated[int, Field(ge=1)] | None, OrNone] = None
    every_steps: Annotated[Annotated[int, Field(ge=1)] | None, OrNone] = None
    hooks: list[Named] = []


def _shape(value: list[int]) -> list[int]:
    if not value or any(size < 1 and size != -1 for size in value):
        raise ValueError(
            f"should begin with the axis of examples, as in [-1, 8]; sizes are positive, or -1; given {value}"
        )
    return value


def _dtype(value: str) -> str:
    from estimator_core.export import Feature

    try:
        return str(Feature((None,), value).dtype)
    except ArgumentTypeError as error:
        raise ValueError(str(error)) from None


class Feature(Part):
    """A feature of a request. An axis of -1 has any length, and the first axis counts examples."""

    shape: Annotated[list[int], AfterValidator(_shape)] = [-1]
    dtype: Annotated[str, AfterValidator(_dtype)] = "float32"


class Serving(Part):
    """The form of requests of an export: a function as `module:function`, or features by name."""

    function: str | None = None
    features: dict[str, Feature] = {}


class PluginSettings(Part):
    """The plugins that may load, and their options by distribution."""

    only: list[str] | None = None
    block: list[str] | None = None
    options: dict[str, dict[str, Any]] = {}


class KeepBestPart(Part):
    """The table of an `ec.KeepBest`."""

    metric: str
    mode: Literal["min", "max"]
    n: int = 1
    evaluation: str | None = None


def _choices(value: Any) -> Any:
    return {key: _none(each) for key, each in value.items()} if isinstance(value, dict) else value


#: Fields of RunConfig that have another form in TOML than in Python.
_FORMS: dict[str, Any] = {
    "keep_checkpoint_best": KeepBestPart | None,
    "partition_rules": list[list[Any]],
    "processes": Literal["auto"] | None,
    "default_hooks": bool | list[str],
    "components": Annotated[dict[str, str | None], BeforeValidator(_choices)],
}


def _run_config_part() -> type[Part]:
    hints = get_type_hints(RunConfig)
    parts: dict[str, Any] = {}
    for one in fields(RunConfig):
        form = _FORMS.get(one.name, hints[one.name])
        default = one.default if one.default is not MISSING else None
        # "none" is an ordinary word if null is not possible.
        parts[one.name] = (Annotated[form, BeforeValidator(_none)] if NoneType in get_args(form) else form), default
    made: Any = create_model("RunConfigPart", __base__=Part, **parts)
    return made


RunConfigPart: type[Part] = _run_config_part()


def _hparam(value: Any) -> Any:
    items: list[Any] = value if isinstance(value, list) else [value]
    if not all(isinstance(item, bool | int | float | str | None) for item in items):
        raise ValueError("should be a number, a string, true, false, or a list of one of them")
    if not items:
        raise ValueError("should not be empty: the items of a list determine its type")
    if len({type(item) for item in items}) > 1:
        raise ValueError(f"should have items of one type, given {items!r}")
    return value


class Objective(Part):
    """A metric of the evaluations, and whether lower or higher values are better."""

    metric: str
    mode: Literal["min", "max"]


class Parameter(Part):
    """The range of a value: numbers from low to high, or choices."""

    low: int | float | None = None
    high: int | float | None = None
    step: int | float | None = None
    log: bool = False
    choices: list[bool | int | float | str] | None = None


class Sweep(Part):
    """A search: its values, objectives and trials."""

    space: Annotated[dict[str, Parameter], Field(min_length=1)]
    objectives: Annotated[list[Objective], Field(min_length=1)]
    trials: Annotated[int, Field(ge=1)]
    seed: int = 0
    workers: Annotated[int, Field(ge=1)] = 1
    every_steps: Annotated[Annotated[int, Field(ge=1)] | None, OrNone] = None
    sampler: Named = Component(name="TPESampler")
    pruner: Named = Component(name="NopPruner")
    storage: Literal["journal", "sqlite"] = "journal"


class Crossval(Part):
    """A cross-validation: the split of the rows, and the batches of the training."""

    folds: Annotated[int, Field(ge=2)] = 5
    splitter: Literal["k_fold", "stratified", "grouped", "stratified_grouped", "time_ordered"] = "k_fold"
    groups: Annotated[str | None, OrNone] = None
    shuffle: Annotated[bool | None, OrNone] = None
    batch_size: Annotated[int, Field(ge=1)] = 32
    seed: int = 0
    workers: Annotated[int, Field(ge=1)] = 1
    way: Literal["alone", "auto", "together", "apart"] = "alone"
    input: Annotated[Input | None, OrNone] = None


class PopulationPart(Part):
    """The trials that are trained together on one device: every seed with all values."""

    seeds: Annotated[int, Field(ge=1)] | Annotated[list[int], Field(min_length=1)] = 1
    values: dict[str, Annotated[list[bool | int | float | str], Field(min_length=1)]] = {}
    every_steps: Annotated[Annotated[int, Field(ge=1)] | None, OrNone] = None
    way: Literal["auto", "together", "apart"] = "auto"


class Configuration(Part):
    """A complete configuration."""

    program: ProgramFile | None = None
    model: Model | None = None
    inputs: Inputs | None = None
    train: Train = Train()
    evaluate: Evaluate = Evaluate()
    run_config: RunConfigPart = RunConfigPart()  # pyright: ignore[reportInvalidTypeForm]
    hparams: dict[str, Annotated[Any, AfterValidator(_hparam)]] = {}
    hooks: list[Named] = []
    exporters: list[Named] = []
    serving: Serving | None = None
    plugins: PluginSettings | None = None
    sweep: Sweep | None = None
    crossval: Crossval | None = None
    population: PopulationPart | None = None
