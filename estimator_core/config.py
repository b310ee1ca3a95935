"""`RunConfig`: every setting of a run apart from the model."""

from __future__ import annotations

import copy
import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Literal

from estimator_core._cluster import ClusterInfo, Processes, detect_processes
from estimator_core._files import check_local, expanded, on_one_line
from estimator_core._moved import home_of
from estimator_core._roles import checked_choices
from estimator_core._wrong_arguments import leaving_out
from estimator_core.errors import ArgumentError, ArgumentTypeError, check_count, did_you_mean, is_integer

__all__ = ["FullySharded", "KeepBest", "RunConfig"]


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"

    def __copy__(self) -> _Unset:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> _Unset:
        return self


_Accepts = Callable[[Any], bool]
_UNSET: Final = _Unset()
_DEFAULT_SAVE_SECS: Final = 600

_WORDS: Final = {"precision": ["float32", "bfloat16", "float16"], "remat": ["none", "dots", "full"]}
_REMOVED: Final = {
    "session_config": (None, "there is no session; set XLA_FLAGS or backend=... instead"),
    "train_distribute": (None, "sharding is set with mesh=... and partition_rules=..."),
    "eval_distribute": (None, "sharding is set with mesh=... and partition_rules=..."),
    "experimental_distribute": (None, "sharding is set with mesh=... and partition_rules=..."),
    "device_fn": (None, "placement is set with mesh=... and partition_rules=..."),
    "protocol": (None, "processes are connected by jax.distributed"),
    "session_creation_timeout_secs": (7200, "there is no session"),
    "experimental_max_worker_delay_secs": (None, "processes start together"),
    "checkpoint_save_graph_def": (True, "there is no graph; the checkpoint's manifest describes the variables"),
}


_PROCESSES: Final = "config.process_group has the count and index of the processes, None for one alone"
_ELSEWHERE: Final = {name: instead for name, (_, instead) in _REMOVED.items()} | {
    "num_worker_replicas": _PROCESSES,
    "global_id_in_cluster": _PROCESSES,
    "num_ps_replicas": "there are no parameter servers; partition_rules=... shards the state",
    "cluster_spec": "config.cluster says what TF_CONFIG does",
    "master": "there are no sessions",
    "evaluation_master": "there are no sessions",
    "service": "there are no sessions",
}


@dataclass(frozen=True)
class FullySharded:
    """A partition rule that splits the widest divisible axis, so that each device stores only its part of the state.

    Args:
        axes: the mesh axes to split over. None: the axes that batches are split over ("data", "fsdp").
        base: a partition spec of the axes that are already split, such as `(None, "model")` for tensor parallelism.
        min_size: variables with fewer elements stay whole.
        slots_only: the variables stay whole, and only the optimizer state is split (ZeRO-1).

    Raises:
        ArgumentError, ArgumentTypeError: `min_size` is not an integer of at least 0.

    Example:
        >>> RunConfig(mesh={"data": -1}, partition_rules=[(".*", FullySharded())]).partition_rules[0][0]
        '.*'
    """

    axes: str | tuple[str, ...] | None = None
    base: tuple[Any, ...] = ()
    min_size: int = 0
    slots_only: bool = False

    def __post_init__(self) -> None:
        check_count("FullySharded: min_size", self.min_size, least=0)


@dataclass(frozen=True, kw_only=True)
class KeepBest:
    """Keeps the checkpoints with the best values of a metric, in addition to those that other rules keep.

    Args:
        metric: the name of the metric in the evaluation results.
        mode: whether a smaller ("min") or a larger ("max") value is better.
        n: the number of checkpoints to keep.
        evaluation: the name of the evaluation. None: the unnamed evaluation.

    Raises:
        ArgumentError, ArgumentTypeError: `mode` is unknown, or `n` is not an integer of at least 1.

    Example:
        >>> RunConfig(keep_checkpoint_best=KeepBest(metric="accuracy", mode="max")).keep_checkpoint_best.n
        1
    """

    metric: str
    mode: Literal["min", "max"]
    n: int = 1
    evaluation: str | None = None

    def __post_init__(self) -> None:
        if self.mode not in ("min", "max"):
            raise ArgumentError(f'`mode` must be "min" or "max", not {self.mode!r}.')
        check_count("KeepBest: n", self.n)


@dataclass(frozen=True)
class RunConfig:
    """The settings of a run: where it writes, how often, and which devices it uses.

    Args:
        model_dir: directory of checkpoints, event files, evaluations and exports. None: `TF_CONFIG["model_dir"]`, or a
            temporary directory.
        tf_random_seed: seed of initial values and of every random key. None draws a seed and records it in the run.
        save_summary_steps: steps between summaries in the event file; 0 or None switches them off.
        save_checkpoints_steps, save_checkpoints_secs: steps or seconds between checkpoints. Set at most one of them.
            Default: every 600 seconds. If both are None, no checkpoints are saved.
        full_checkpoint_every: the interval N of full checkpoints: every N-th checkpoint is written in full. The others
            store only the changed rows of large arrays such as embedding tables.
        keep_checkpoint_max: number of newest checkpoints to keep. None or 0 keeps all.
        keep_checkpoint_every_n_hours: also keeps one checkpoint for every n hours of training.
        keep_checkpoint_best: also keeps the best checkpoints by an evaluation metric: an `ec.KeepBest`.
        log_step_count_steps: steps between log lines of loss and steps per second. None switches them off.
        backend: a device backend by name ("cpu", "gpu", "tpu", ...) or "auto".
        mesh: axis sizes by name; -1 means all remaining devices. `{"data": -1}` shards batches over all devices of the
            backend. Batches are split over the axes "data" and "fsdp". None: one device, or with several processes all
            devices.
        partition_rules: `(regex of variable names, partition spec)` pairs. The first match decides. A variable without
            a match is replicated. A spec is a `FullySharded`, or a tuple with a mesh axis (or None) for each axis of
            the variable.
        logical_axis_rules: mesh axes by logical axis name, for example `{"mlp": "model"}`. Specs, modules and
            `ec.with_logical_constraint` use these names for axes of arrays. "batch" is predefined.
        precision: "float32", "bfloat16" or "float16". With the last two, model_fn receives its trainable variables and
            float features in that dtype. The stored variables, their gradients and the optimizer stay in float32.
            "float16" scales the loss and skips steps whose gradients overflow.
        remat: what the backward pass recomputes instead of storing: "none", "dots" (everything except the results of
            matrix products) or "full" (everything).
        accumulate_steps: micro-batches averaged into one step.
        steps_per_dispatch: training steps run by one call of the device program. "auto" measures, and logs its choice.
        batches_per_dispatch: batches of an evaluation or prediction computed by one call of the device program, if no
            hook needs each batch separately. "auto" starts with 1, and uses 20 once a trial was faster and returned the
            same bits.
        prefetch: batches that a thread draws ahead. 0 draws without a thread. "auto" measures.
        check_inputs: whether the data contract of a model checks labels and features on the host. It converts them in
            any case.
        eval_loss: how `evaluate` computes "loss": "batch_mean" (mean over batches, as in tf.estimator) or
            "example_mean".
        allow_untrained: whether evaluate, predict and export accept freshly initialised variables. Default: they raise
            an error.
        allow_cast: whether to restore a checkpoint whose dtypes differ from those of the model.
        grace_secs: seconds allowed between SIGTERM and the end of the final save. After that, the log names what the
            run waits for.
        compile_cache: directory of compiled programs, so that the next process starts without compiling. "auto" uses
            the directory configured in jax, or else one in the user's cache directory. None configures no directory.
        debug: whether to run without jit and check that every output is finite.
        processes: the processes that train this model together. "auto" finds them in the environment (`estimator
            launch`, TF_CONFIG, SLURM, Kubernetes, MPI). `ec.Processes(...)` lists them. None: this process alone.
        default_hooks: whether run-level hooks of installed packages run: True, False, or the names of the packages
            whose hooks run.
        plugins_lock: a file written by `estimator plugins lock`. A call with other plugins than those in the file is
            refused.
        components: the component for each role of the core, by role: the name of an installed component, or None to
            leave the role empty. The roles are "export_check" (never empty), "checkpoint_policy" and the hooks
            "nan_tensor", "log", "step_counter" and "summary_saver". The config copies the mapping.

    Raises:
        ArgumentError, ArgumentTypeError: a value cannot be used; raised before any work starts.

    Example:
        >>> config = RunConfig(model_dir="runs/one", save_checkpoints_steps=200)
        >>> config.replace(save_checkpoints_secs=60).save_checkpoints_steps is None
        True

    Source: `tf.estimator.RunConfig`.
    """

    model_dir: str | None = None
    _: KW_ONLY
    tf_random_seed: int | None = None
    save_summary_steps: int | None = 100
    save_checkpoints_steps: int | None = _UNSET  # type: ignore[assignment]
    save_checkpoints_secs: float | None = _UNSET  # type: ignore[assignment]
    full_checkpoint_every: int = 1
    keep_checkpoint_max: int | None = 5
    keep_checkpoint_every_n_hours: float = 10000
    keep_checkpoint_best: KeepBest | None = None
    log_step_count_steps: int | None = 100
    backend: str = "auto"
    mesh: Mapping[str, int] | None = None
    partition_rules: Sequence[tuple[str, Any]] = ()
    logical_axis_rules: Mapping[str, str | Sequence[str] | None] = field(default_factory=dict[str, Any])
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    remat: Literal["none", "dots", "full"] = "none"
    accumulate_steps: int = 1
    steps_per_dispatch: int | Literal["auto"] = 1
    batches_per_dispatch: int | Literal["auto"] = "auto"
    prefetch: int | Literal["auto"] = "auto"
    check_inputs: bool = True
    eval_loss: Literal["batch_mean", "example_mean"] = "batch_mean"
    allow_untrained: bool = False
    allow_cast: bool = False
    grace_secs: float = 30.0
    compile_cache: str | None = "auto"
    debug: bool = False
    processes: Processes | Literal["auto"] | None = "auto"
    default_hooks: bool | Sequence[str] = True
    plugins_lock: str | None = None
    components: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])

    def __new__(cls, *args: Any, **given: Any) -> RunConfig:
        """Refuses unknown and removed arguments with a hint. A plain dataclass would not show one."""
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known and name not in _REMOVED:
                hint = did_you_mean(name, known)
                raise ArgumentTypeError(f"RunConfig has no argument {name!r}.{hint} Allowed: {known}.")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        cluster = ClusterInfo.from_environment()
        object.__setattr__(self, "_cluster", cluster)
        object.__setattr__(self, "_process_group", _process_group(self.processes, cluster))
        object.__setattr__(self, "model_dir", _model_dir(self.model_dir, cluster.model_dir))
        steps, secs = _save_cadence(self.save_checkpoints_steps, self.save_checkpoints_secs)
        object.__setattr__(self, "save_checkpoints_steps", steps)
        object.__setattr__(self, "save_checkpoints_secs", secs)
        object.__setattr__(self, "components", checked_choices(self.components))
        _check(self)

    @property
    def cluster(self) -> ClusterInfo:
        """The cluster that TF_CONFIG describes, as seen from this process."""
        return self._cluster  # type: ignore[attr-defined, no-any-return]

    @property
    def is_chief(self) -> bool:
        """Whether this process writes checkpoints, events and exports."""
        group = self.process_group
        return self.cluster.is_chief if group is None else group.is_chief

    @property
    def process_group(self) -> Processes | None:
        """The processes that train this model together; None if this process is alone."""
        return self._process_group  # type: ignore[attr-defined, no-any-return]

    @property
    def task_type(self) -> str | None:
        """The role of this process in the cluster."""
        return self.cluster.task_type

    @property
    def task_id(self) -> int | None:
        """The index of this process within its role."""
        return self.cluster.task_id

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _ELSEWHERE:
                raise AttributeError(f"RunConfig has no attribute {name!r}: {_ELSEWHERE[name]}.", name=name, obj=self)
            raise AttributeError(
                f"'RunConfig' object has no attribute {name!r}{home_of(f'RunConfig.{name}')}", name=name, obj=self
            )

    def replace(self, **changes: Any) -> RunConfig:
        """Returns a validated copy with some fields changed.

        Setting one of save_checkpoints_steps and save_checkpoints_secs switches the other off.

        Raises:
            ArgumentError: the name is not a field, or is a field of tf.estimator with an unsupported value.
        """
        known = [field.name for field in fields(self)]
        for name in changes:
            if name not in known and name not in _REMOVED:
                raise ArgumentError(f"Replacing {name} is not supported. Allowed properties are {known}.")
        values = {name: copy.deepcopy(getattr(self, name)) for name in known}
        if "save_checkpoints_steps" in changes and "save_checkpoints_secs" not in changes:
            values["save_checkpoints_secs"] = None
        if "save_checkpoints_secs" in changes and "save_checkpoints_steps" not in changes:
            values["save_checkpoints_steps"] = None
        return RunConfig(**{**values, **changes})


RunConfig.__init__ = leaving_out("RunConfig", _REMOVED)(RunConfig.__init__)  # type: ignore[method-assign]
# Notebooks and `help` read the arguments from `__new__`, which accepts any so that it can refuse unknown ones with a
# hint.
RunConfig.__new__.__signature__ = inspect.signature(RunConfig.__init__).replace(return_annotation="RunConfig")  # type: ignore[attr-defined]


def _model_dir(given: Any, from_cluster: str | None) -> str | None:
    if given is None:
        return None if from_cluster is None else on_one_line("model_dir", expanded(from_cluster))
    if not isinstance(given, str) and not hasattr(given, "__fspath__"):
        raise ArgumentTypeError(f"model_dir must be a path, given: {given!r}.")
    path = str(given)
    if not path:
        raise ArgumentError("model_dir should be non-empty. Leave it out for a temporary directory.")
    path = on_one_line("model_dir", expanded(path))
    if from_cluster is not None and expanded(from_cluster) != path:
        raise ArgumentError(
            "`model_dir` provided in RunConfig construct, if set, must have the same value as the model_dir in "
            f"TF_CONFIG. RunConfig: {path!r}, TF_CONFIG: {from_cluster!r}."
        )
    return path


def _process_group(given: Any, cluster: ClusterInfo) -> Processes | None:
    if given == "auto":
        return detect_processes(os.environ, cluster)
    if given is None or (isinstance(given, Processes) and given.count == 1):
        return None
    if not isinstance(given, Processes):
        raise ArgumentTypeError(f'processes should be "auto", None or an ec.Processes, given: {given!r}.')
    return given


def _save_cadence(steps: Any, secs: Any) -> tuple[int | None, float | None]:
    if steps is _UNSET and secs is _UNSET:
        return None, _DEFAULT_SAVE_SECS
    steps = None if steps is _UNSET else steps
    secs = None if secs is _UNSET else secs
    if steps is not None and secs is not None:
        raise ArgumentError(
            "`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set. Give one of them."
        )
    return steps, secs


def _is_positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _selects_plugins(value: Any) -> bool:
    named = isinstance(value, Iterable) and not isinstance(value, str)
    return value in (True, False) or (named and all(isinstance(name, str) for name in value))


def _is_mesh(value: Any) -> bool:
    axes: Mapping[Any, Any] = value if isinstance(value, Mapping) else {}
    return bool(axes) and all(isinstance(axis, str) and is_integer(size) for axis, size in axes.items())


def _int_from(least: int) -> _Accepts:
    return lambda value: is_integer(value) and value >= least


def _auto_or(accepts: _Accepts) -> _Accepts:
    return lambda value: value == "auto" or accepts(value)


def _none_or(accepts: _Accepts) -> _Accepts:
    return lambda value: value is None or accepts(value)


def _is(kind: type) -> _Accepts:
    return lambda value: isinstance(value, kind)


def _one_of(words: Sequence[str]) -> _Accepts:
    return lambda value: value in words


def _require(config: RunConfig, error: type[Exception], accepts: _Accepts, expected: str, *names: str) -> None:
    for name in names:
        if not accepts(getattr(config, name)):
            raise error(f"{name} should {expected}, given: {getattr(config, name)!r}.")


def _check(config: RunConfig) -> None:
    """Reports the first fault, in this order."""
    if config.tf_random_seed is not None and not is_integer(config.tf_random_seed):
        raise ArgumentTypeError(f"tf_random_seed must be integer, given: {config.tf_random_seed!r}.")
    if config.tf_random_seed is not None and not 0 <= config.tf_random_seed < 2**64:
        raise ArgumentError(f"tf_random_seed must lie in [0, 2**64), given: {config.tf_random_seed}.")
    value = functools.partial(_require, config, ArgumentError)
    value(_none_or(_int_from(0)), "be an int >= 0 or None", "save_summary_steps", "keep_checkpoint_max")
    value(_none_or(_int_from(1)), "be an int >= 1 or None", "save_checkpoints_steps", "log_step_count_steps")
    value(_int_from(1), "be an int >= 1", "accumulate_steps", "full_checkpoint_every")
    value(_none_or(_is_positive), "be > 0", "save_checkpoints_secs", "keep_checkpoint_every_n_hours", "grace_secs")
    value(_auto_or(_int_from(1)), 'be "auto" or an int >= 1', "steps_per_dispatch", "batches_per_dispatch")
    value(_auto_or(_int_from(0)), 'be "auto" or an int >= 0', "prefetch")
    value(_one_of(("batch_mean", "example_mean")), 'be "batch_mean" or "example_mean"', "eval_loss")
    for name, words in _WORDS.items():
        value(_one_of(words), f"be one of {words}", name)
    kind = functools.partial(_require, config, ArgumentTypeError)
    kind(_is_word, 'be a name such as "auto" or "cpu"', "backend")
    kind(_none_or(_is_word), 'be a directory, "auto" or None', "compile_cache")
    check_local("compile_cache", config.compile_cache or "")
    kind(_none_or(_is(KeepBest)), 'be None or ec.KeepBest(metric=..., mode="max")', "keep_checkpoint_best")
    kind(_is(bool), "be True or False", "allow_untrained", "allow_cast", "check_inputs", "debug")
    kind(_selects_plugins, "be True, False or a list of plugin names", "default_hooks")
    kind(_none_or(_is_mesh), 'map axis names to sizes, for example {"data": -1}', "mesh")
    _check_mesh(config)


def _check_mesh(config: RunConfig) -> None:
    mesh = config.mesh or {}
    if any(size == 0 or size < -1 for size in mesh.values()) or list(mesh.values()).count(-1) > 1:
        raise ArgumentError(f"mesh sizes should be positive, with -1 at most once, given: {dict(mesh)!r}.")
    for name, entry in config.logical_axis_rules.items():
        axes = (entry,) if isinstance(entry, str) else entry or ()
        if not isinstance(name, str) or not all(isinstance(axis, str) for axis in axes):
            raise ArgumentTypeError(
                f"logical_axis_rules should map names to mesh axes or None, given: {name!r}: {entry!r}."
            )
    for rule in config.partition_rules:
        if not isinstance(rule, (tuple, list)) or len(rule) != 2 or not isinstance(rule[0], str):
            raise ArgumentTypeError(f"partition_rules should hold (regex, spec) pairs, given: {rule!r}.")
