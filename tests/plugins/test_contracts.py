"""Tests that a component that does not fulfil its contract is refused before step 1, with plugin, member and remedy."""

import functools
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core._hook_members import refuse_misfit
from estimator_core._plugins.discovery import package_of_code
from estimator_core.errors import (
    ArgumentTypeError,
    ExportError,
    HookError,
    PluginError,
    PluginLookupError,
    VariableError,
)
from estimator_core.plugins import Plugins
from estimator_core.storage import LocalStorage, Storage, StorageError, open_storage
from estimator_core.testing import tiny_estimator, tiny_input_fn, tiny_model_fn

#: A plugin with one component, whose target is the class `Made`.
ONE = """
from estimator_core.plugins import Component

def estimator_components():
    return [Component(kind="{kind}", name="acme_one", target="acme.made:Made", summary="A fixture.")]
"""
BACKEND = """
from estimator_core.plugins import Plugins

class Made(Plugins(autoload=False).get("backend", "cpu")):
    {fault}
"""


def installed(site: Any, kind: str, code: str) -> Plugins:
    site.add("acme", ONE.format(kind=kind), files={"made.py": code})
    return site.plugins()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("devices = 3", r"`devices` is 3, but Backend requires a method\. Make it one"),
        ("def devices(self, count): pass", r"`devices\(count\)` is called as `devices\(\)`: missing a required argu"),
        ("def peak_flops(self, device_kind): pass", r"called as `peak_flops\(device_kind, dtype\)`: too many"),
        ("async def probe(self): pass", r"`probe` has `async`, so calling it runs nothing"),
    ],
)
def test_a_backend_with_a_wrong_method_is_refused_by_name(site: Any, tmp_path: Path, fault: str, message: str) -> None:
    plugins = installed(site, "backend", BACKEND.format(fault=fault))
    with pytest.raises(PluginError, match=rf"backend 'acme_one' of acme 1\.0 \(acme\.made:Made\) returned .*{message}"):
        tiny_estimator(tmp_path / "model", backend="acme_one", plugins=plugins).train(tiny_input_fn(), steps=1)
    assert not list(tmp_path.glob("model/checkpoints/*"))


def test_a_backend_without_a_member_is_refused_by_name(site: Any, tmp_path: Path) -> None:
    plugins = installed(site, "backend", "class Made:\n    name = 'acme_one'\n    def probe(self): pass\n")
    with pytest.raises(PluginError, match=r"of acme 1\.0 .*: it has no `devices`, which Backend requires\. Add it"):
        tiny_estimator(tmp_path / "model", backend="acme_one", plugins=plugins).train(tiny_input_fn(), steps=1)


def test_a_storage_that_cannot_stream_is_refused_when_it_is_opened(site: Any) -> None:
    """It once failed at the end of the run, when the first checkpoint was written."""
    code = (
        "from estimator_core.storage import LocalStorage\n"
        "def Made(url, options):\n    return Parts()\n"
        "class Parts:\n" + "".join(f"    {name} = LocalStorage.{name}\n" for name in vars(LocalStorage) if name in KEPT)
    )
    plugins = installed(site, "storage", code + "    url = ''\n")
    with pytest.raises(PluginError, match=r"storage 'acme_one' of acme 1\.0 .*it has no `put_stream`, which Storage"):
        open_storage("acme-one://box/run", plugins=plugins)


KEPT = ("put_new", "put", "get", "get_ranges", "list", "now", "delete", "close")


def test_a_constructor_that_fails_names_its_component(site: Any) -> None:
    plugins = installed(site, "format", "def Made():\n    raise KeyError('licence')\n")
    with pytest.raises(KeyError, match="licence") as raised:
        plugins.make("format", "acme_one")
    assert raised.value.__notes__ == ["in the constructor of format 'acme_one' of acme 1.0 (acme.made:Made)"]


def test_what_is_made_fulfils_the_contract_of_a_kind_without_a_class(site: Any) -> None:
    plugins = installed(site, "input", "def Made(rows, *, step):\n    return lambda: range(0, rows, step)\n")
    assert list(plugins.make("input", "acme_one", 4, step=2)()) == [0, 2]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("after_step", "def after_step(self, run, step): pass"),
        ("on_values", "def on_values(self, run, values): pass"),
        ("before_last_save", "def before_last_save(self): pass"),
        ("end", "def end(self): pass"),
        ("restore", "def restore(self): pass"),
        ("next_step", "def next_step(self): return 3"),
    ],
)
def test_a_hook_with_other_arguments_is_refused_before_the_first_step(tmp_path: Path, name: str, code: str) -> None:
    """A wrong `end` once failed after the last step, and a wrong `restore` in the first resumed run."""
    names: dict[str, Any] = {}
    exec(f"import estimator_core as ec\nclass Wrong(ec.Hook):\n    {code}", names)
    with pytest.raises(HookError, match=rf"hook Wrong.*: `{name}\(.*\)` is called as `{name}\(.+\)`: .*Give it these"):
        tiny_estimator(str(tmp_path)).train(tiny_input_fn(), steps=2, hooks=[names["Wrong"]()])
    assert not list(tmp_path.glob("checkpoints/*"))


def test_a_hook_may_collect_its_arguments(tmp_path: Path) -> None:
    seen: list[int] = []

    class Collects(ec.Hook):
        def after_step(self, *arguments: Any, **named: Any) -> None:
            seen.append(arguments[1])

        @staticmethod
        def end(run: Any, when: str = "now") -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            seen.append(run.step)

    tiny_estimator(str(tmp_path)).train(tiny_input_fn(), steps=2, hooks=[Collects()])
    assert seen == [1, 2, 2]


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        (
            "checkpoint_policy",
            "def at_end(self): return True\n    def next_step(self, step): return step + 1",
            r"`at_end\(\)` is called as `at_end\(run\)`",
        ),
        ("export_check", "def difference(self, expected): return None", r"called as `difference\(expected, found\)`"),
        ("export_check", "def differs(self): pass", r"it has no `difference`, which ExportCheck requires"),
    ],
)
def test_a_component_of_a_role_is_examined_before_the_first_step(
    site: Any, tmp_path: Path, kind: str, code: str, message: str
) -> None:
    """A check of exports was once examined at the first export, and `at_end` was first called after the last step."""
    base = "ec.hooks.CheckpointPolicy" if kind == "checkpoint_policy" else ""
    plugins = installed(site, kind, f"import estimator_core as ec\nclass Made({base}):\n    {code}\n")
    with pytest.raises(PluginError, match=rf"components=.*{kind} 'acme_one' of acme 1\.0 .*{message}"):
        tiny_estimator(tmp_path / "model", components={kind: "acme_one"}, plugins=plugins).train(
            tiny_input_fn(), steps=1
        )
    assert not list(tmp_path.glob("model/checkpoints/*"))


def test_a_policy_whose_state_is_no_mapping_is_named(site: Any, tmp_path: Path) -> None:
    """The error once named the hook of the core that asks the policy."""
    code = (
        "import estimator_core as ec\nclass Made(ec.hooks.CheckpointPolicy):\n"
        "    def state(self): return None\n    def next_step(self, step): return step + 1\n"
    )
    plugins = installed(site, "checkpoint_policy", code)
    estimator = tiny_estimator(tmp_path / "model", components={"checkpoint_policy": "acme_one"}, plugins=plugins)
    with pytest.raises(HookError, match=r"checkpoint policy Made .*state\(\) returned None; it must return a mapping"):
        estimator.train(tiny_input_fn(), steps=1)


def warm_started(model_dir: Path, source: Any) -> ec.Estimator:
    return ec.Estimator(tiny_model_fn, str(model_dir), warm_start_from=source)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, r"Given returned None; it must return an InitialValue for each path"),
        ({"slope": np.zeros(())}, r"Given returned \{'slope': .*it must return an InitialValue for each path"),
    ],
)
def test_initial_values_of_another_type_are_refused_by_name(tmp_path: Path, answer: Any, message: str) -> None:
    class Given:
        def initial_values(self, specs: Any, key: Any) -> Any:
            return answer

    with pytest.raises(VariableError, match=message) as raised:
        warm_started(tmp_path, Given()).train(tiny_input_fn(), steps=1)
    assert any("in initial values" in note and "Given from module" in note for note in raised.value.__notes__)


def test_initial_values_with_other_arguments_are_refused_by_name(tmp_path: Path) -> None:
    class Given:
        def initial_values(self, specs: Any) -> Mapping[str, Any]:
            return {}

    with pytest.raises(VariableError, match=r"Given.*is called as `initial_values\(specs, key\)`"):
        warm_started(tmp_path, Given()).train(tiny_input_fn(), steps=1)


@pytest.mark.parametrize("answer", [3, True, ["path"]])
def test_an_exporter_that_returns_no_path_is_named(tmp_path: Path, answer: Any) -> None:
    """`train_and_evaluate` once returned the value as the path of an export."""

    class Wrong:
        name = "wrong"

        def export(self, *arguments: Any) -> Any:
            return answer

    spec = ec.EvalSpec(tiny_input_fn(epochs=1), exporters=Wrong())
    with pytest.raises(ExportError, match=r"export\(\) returned .*; it must return the path of the export, or None"):
        ec.train_and_evaluate(tiny_estimator(str(tmp_path)), ec.TrainSpec(tiny_input_fn(), max_steps=1), spec)


def test_an_adapter_that_fails_is_named_and_no_feature_is_suspected(site: Any, tmp_path: Path) -> None:
    code = (
        "class Made:\n    name, library = 'acme_one', 'acme.made'\n"
        "    def handles(self, module): raise KeyError('layers')\n"
        "    def bind(self, binding): pass\n    def write_back(self, module, values): pass\n"
    )
    plugins = installed(site, "adapter", code)

    class Layer:
        pass

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        ec.module(Layer(), name="layer")
        return ec.EstimatorSpec(mode, loss=(features["x"] ** 2).mean(), train_op=optax.sgd(0.1))

    with pytest.raises(
        VariableError, match=r"adapter 'acme_one' \(acme\.made\) failed in handles\(\).*block it"
    ) as told:
        ec.Estimator(model_fn, str(tmp_path), plugins=plugins).train(tiny_input_fn(), steps=1)
    assert "If 'layers' is a feature" not in "".join([str(told.value), *getattr(told.value, "__notes__", [])])


def test_a_missing_component_of_one_distribution_suspects_no_other(site: Any) -> None:
    site.add("acme", "import nothing_of_that_name")
    site.add("other", "raise ValueError('no licence')")
    with pytest.raises(PluginLookupError) as told:
        site.plugins().get("hook", "acme:bell")
    assert "acme 1.0 provides it, but is failed" in str(told.value)
    assert "other" not in str(told.value)


def test_methods_that_yield_fulfil_a_contract_of_iterators(tmp_path: Path) -> None:
    class Yields(LocalStorage):
        def list(self, prefix: str) -> Iterator[Any]:
            yield from super().list(prefix)

    refuse_misfit(Yields(tmp_path), Storage, "the storage", ArgumentTypeError)
    assert list(Yields(tmp_path).list("")) == []


class Fetches(Protocol):
    """A contract with members of every form."""

    colour: str

    def get(self, key: str) -> str: ...


class Further(Fetches, Protocol):
    async def fetch(self, key: str) -> str: ...
    def rows(self) -> Generator[int]: ...
    def __call__(self, key: str) -> str: ...
    def __len__(self) -> int: ...
    @staticmethod
    def merged(one: int, other: int) -> int: ...
    @classmethod
    def load(cls, path: str) -> "Further": ...


def with_client(method: Any) -> Any:
    """Passes an argument that the caller does not have."""

    @functools.wraps(method)
    def call(self: Any, *arguments: Any) -> Any:
        return method(self, "client", *arguments)

    return call


class Right:
    colour = "red"

    def __repr__(self) -> str:
        raise RuntimeError("not connected")

    @with_client
    def get(self, client: str, key: str) -> str:
        return client + key

    async def fetch(self, key: str) -> str:
        return key

    def rows(self) -> Iterator[int]:
        yield 1

    def __call__(self, key: str) -> str:
        return key

    def __len__(self) -> int:
        return 0

    @staticmethod
    def merged(one: int, other: int) -> int:
        return one + other

    @classmethod
    def load(cls, path: str) -> Any:
        return cls()


def test_a_component_fulfils_a_contract_of_any_form(site: Any) -> None:
    """Each of these members was once refused, or examined with one argument less, and a failing repr failed the run."""
    refuse_misfit(Right(), Further, "it", ArgumentTypeError)
    code = "from tests.plugins.test_contracts import Right\nclass Made(Right):\n    name = 'acme_one'\n"
    kind = "from estimator_core.plugins import Component, Kind\ndef estimator_kinds():\n    return [Kind("
    kind += "name='fetcher', title='fetchers', contract='tests.plugins.test_contracts:Further', target='a class', "
    site.add("acme-kinds", kind + "suite='HookSuite')]\n")
    assert installed(site, "fetcher", code).make("fetcher", "acme_one")("a") == "a"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"colour": None}, "it has no `colour`, which Further requires"),
        ({"__call__": None}, "`__call__` is .*, but Further requires a method"),
        ({"__call__": lambda self: ""}, r"`__call__\(\)` is called as `__call__\(key\)`: too many"),
        ({"__len__": None}, "it has no `__len__`, which Further requires"),
        ({"merged": staticmethod(lambda one: one)}, r"`merged\(one\)` is called as `merged\(one, other\)`"),
        ({"load": classmethod(lambda cls: cls)}, r"`load\(\)` is called as `load\(path\)`"),
    ],
)
def test_a_misfit_of_any_form_is_refused(fault: dict[str, Any], message: str) -> None:
    members = {**vars(Right), "__repr__": object.__repr__, **fault}
    wrong = type("Wrong", (), {name: member for name, member in members.items() if member is not None})
    with pytest.raises(ArgumentTypeError, match=message):
        refuse_misfit(wrong(), Further, "it", ArgumentTypeError)


def test_a_contract_that_cannot_be_imported_is_named(site: Any) -> None:
    kind = "from estimator_core.plugins import Component, Kind\ndef estimator_kinds():\n    return [Kind("
    site.add(
        "acme-kinds",
        kind + "name='fetcher', title='f', contract='acme_kinds.no:Fetcher', target='a class', suite='HookSuite')]\n",
    )
    plugins = installed(site, "fetcher", "class Made: pass")
    with pytest.raises(PluginError, match=r"fetcher 'acme_one' of acme 1\.0 .*contract acme_kinds\.no:Fetcher of kind"):
        plugins.make("fetcher", "acme_one")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            "def probe(self): raise OSError('no driver')",
            r"probe\(\) failed, .* OSError: no driver\. Upgrade its package",
        ),
        ("def probe(self): return None", r"probe\(\) returned None; it must return Available or Unavailable"),
        ("def devices(self): return None", r"devices\(\) returned None; it must return a sequence of at least one"),
        ("def devices(self): return []", r"devices\(\) returned \[\]; it must return a sequence of at least one"),
    ],
)
def test_a_backend_that_breaks_its_contract_is_named(site: Any, tmp_path: Path, fault: str, message: str) -> None:
    plugins = installed(site, "backend", BACKEND.format(fault=fault))
    with pytest.raises(PluginError, match=rf"backend Made from acme 1\.0: {message}"):
        tiny_estimator(tmp_path / "model", backend="acme_one", plugins=plugins).train(tiny_input_fn(), steps=1)


@pytest.mark.parametrize("member", ["initialize", "devices"])
def test_an_error_of_a_backend_names_it(site: Any, tmp_path: Path, member: str) -> None:
    plugins = installed(site, "backend", BACKEND.format(fault=f"def {member}(self): raise OSError('no driver')"))
    with pytest.raises(OSError, match="no driver") as raised:
        tiny_estimator(tmp_path / "model", backend="acme_one", plugins=plugins).train(tiny_input_fn(), steps=1)
    assert raised.value.__notes__ == [f"in {member}() of backend Made from acme 1.0"]


def test_an_automatic_choice_leaves_out_a_backend_whose_probe_fails(
    site: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    priority = "\ndef estimator_capabilities():\n    return ['priority']\n"
    code = BACKEND.format(fault="def probe(self): raise OSError('no driver')")
    site.add("acme", ONE.format(kind="backend") + priority, files={"made.py": code})
    estimator = tiny_estimator(tmp_path / "model", backend="auto", plugins=site.plugins())
    assert estimator.train(tiny_input_fn(), steps=1).latest_checkpoint() is not None
    assert (
        "backend acme_one is left out, because its plugin is broken: backend Made from acme 1.0: probe()" in caplog.text
    )


def test_an_error_in_the_binding_of_a_module_names_the_adapter(site: Any, tmp_path: Path) -> None:
    code = (
        "class Made:\n    name, library = 'acme_one', 'acme.made'\n"
        "    def handles(self, module): return type(module).__name__ == 'Layer'\n"
        "    def bind(self, binding): raise OSError('no weights')\n"
        "    def write_back(self, module, values): pass\n"
    )
    plugins = installed(site, "adapter", code)

    class Layer:
        pass

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        ec.module(Layer(), name="layer")
        return ec.EstimatorSpec(mode, loss=(features["x"] ** 2).mean(), train_op=optax.sgd(0.1))

    with pytest.raises(Exception, match="no weights") as told:
        ec.Estimator(model_fn, str(tmp_path), plugins=plugins).train(tiny_input_fn(), steps=1)
    words = "in bind() of module adapter Made from acme 1.0, for the module 'layer'"
    assert words in "".join(getattr(told.value, "__notes__", []))


@pytest.mark.parametrize("answer", [None, {"x": 1, "y": 2}, (1, 2, 3)])
def test_a_transform_of_batches_that_returns_no_pair_is_named(tmp_path: Path, answer: Any) -> None:
    class Doubles(ec.Hook):
        def begin(self, run: Any) -> None:
            run.transform_batches(self.doubled)

        def doubled(self, features: Any, labels: Any) -> Any:
            return answer

    words = (
        r"Doubles\.doubled from module tests\.plugins\.test_contracts, which was passed to transform_batches, returned"
    )
    with pytest.raises(HookError, match=rf"{words} .*; it must return a pair \(features, labels\)"):
        tiny_estimator(str(tmp_path)).train(tiny_input_fn(), steps=1, hooks=[Doubles()])


def test_an_error_of_a_transform_of_batches_names_it(tmp_path: Path) -> None:
    class Doubles(ec.Hook):
        def begin(self, run: Any) -> None:
            run.transform_batches(lambda features, labels: features["absent"])

    with pytest.raises(Exception, match="absent") as told:
        tiny_estimator(str(tmp_path)).train(tiny_input_fn(), steps=1, hooks=[Doubles()])
    assert "Doubles.begin.<locals>.<lambda> from module tests" in "".join(getattr(told.value, "__notes__", []))


STORAGE = """
from estimator_core.storage import LocalStorage
class Made(LocalStorage):
    def __init__(self, url, options):
        super().__init__("{folder}")
    {fault}
"""


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("def get(self, key): return None", r"get\('a',\) returned None; it must return bytes\. Upgrade its package"),
        ("def list(self, prefix): return None", r"list\('',\) returned None; it must return an iterator of Entry"),
        ("def get_ranges(self, key, ranges): return 3", r"get_ranges\(.*\) returned 3; it must return a list of bytes"),
        ("def now(self): return None", r"now\(\) returned None; it must return the Unix time"),
    ],
)
def test_a_storage_that_breaks_its_contract_is_named(site: Any, tmp_path: Path, fault: str, message: str) -> None:
    plugins = installed(site, "storage", STORAGE.format(folder=tmp_path, fault=fault))
    storage = open_storage("acme-one://box", plugins=plugins)
    assert isinstance(storage, Storage)
    storage.put("a", b"1")
    with pytest.raises(StorageError, match=rf"storage 'acme_one' of acme 1\.0 \(acme\.made:Made\): {message}"):
        for _ in (storage.get("a"), storage.list(""), storage.get_ranges("a", [(0, 1)]), storage.now()):
            pass


def test_an_unexpected_error_of_a_storage_names_it(site: Any, tmp_path: Path) -> None:
    fault = "def get(self, key): raise KeyError('etag')"
    storage = open_storage("acme-one://box", installed(site, "storage", STORAGE.format(folder=tmp_path, fault=fault)))
    with pytest.raises(KeyError, match="etag") as raised:
        storage.get("a")
    assert raised.value.__notes__ == ["in get('a',) of storage 'acme_one' of acme 1.0 (acme.made:Made)"]


def test_an_error_names_the_right_distribution_of_a_shared_namespace(site: Any) -> None:
    for name in ("first", "second"):
        folder = site.path / "acme_space" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
        metadata = site.path / f"acme_{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-{name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[estimator.plugins]\n{name} = acme_space.{name}\n")
    assert package_of_code("acme_space.first.hook") == "acme-first 1.0"
    assert package_of_code("acme_space.second.hook") == "acme-second 1.0"
    assert package_of_code("acme_space.third") == "module acme_space.third"
