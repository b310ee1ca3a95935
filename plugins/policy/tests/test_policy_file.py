"""Tests of a policy file: where it is found, what it forbids, and what other settings may still change."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentError, PluginError, PluginLookupError
from estimator_core.plugins import Component, Plugins, policy_files
from estimator_core.testing import FakeRun, tiny_estimator, tiny_input_fn
from estimator_policy import read_policy
from plugins.policy.tests.packages import install

HEAD = Component(kind="head", name="binary_class", target="json:loads", summary="A fixture.")
EXPLOSIVE = "raise AssertionError('this module must not be imported')\n"
HOOKS = """
from estimator_core.hooks import Hook

def estimator_run_hooks(run):
    return [Hook()]
"""


def status(plugins: Plugins, distribution: str) -> tuple[str, str]:
    (record,) = [one for one in plugins.records() if one.distribution == distribution]
    return record.status, record.error


def test_what_it_blocks_is_not_imported_whatever_the_others_say(site, policy):
    install(site, "free-widgets", more=EXPLOSIVE)
    policy('[plugins]\nblock = ["Free.Widgets"]\n')
    for arguments in (
        {},
        {"only": ["free-widgets"]},
        {"autoload": True},
        {"environ": {"ESTIMATOR_PLUGINS": "free-widgets", "ESTIMATOR_PLUGINS_BLOCK": ""}},
    ):
        kept, why = status(Plugins(**{"environ": {}, **arguments}), "free-widgets")
        assert kept == "blocked"
        assert why.startswith("forbidden by the policy (")
        assert why.endswith("estimator.toml)")


def test_what_it_does_not_allow_is_not_imported_whatever_the_others_say(site, policy):
    install(site, "free-widgets", more=EXPLOSIVE)
    install(site, "acme-heads")
    policy('[plugins]\nallow = ["acme-heads"]\n')
    plugins = Plugins(only=["free-widgets", "acme-heads"], environ={})
    assert status(plugins, "free-widgets")[0] == "blocked"
    assert status(plugins, "acme-heads")[0] == "loaded"
    assert status(Plugins(only=[], environ={}), "acme-heads")[0] == "blocked"  # other settings may narrow it


def test_an_allow_list_of_the_policy_cannot_be_met_by_the_name_of_an_entry_point(site, policy):
    install(site, "acme_heads")  # the package acme_heads, of a distribution with another name
    (site / "acme_heads-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    policy('[plugins]\nallow = ["acme-heads"]\n')
    assert status(Plugins(environ={}), "stranger")[0] == "blocked"


def test_an_empty_allow_list_allows_nothing(site, policy):
    install(site, "acme-heads")
    policy("[plugins]\nallow = []\n")
    assert [one.name for one in Plugins(environ={}).records() if one.usable] == ["core"]


def test_an_override_gives_a_component_by_its_plain_name(site, policy):
    install(site, "acme-heads")
    install(site, "other-heads")
    with pytest.raises(PluginLookupError, match="is provided by 2 plugins"):
        Plugins(only=["acme-heads", "other-heads"], environ={}).find("head", "binary_class")
    policy('[plugins.overrides]\nhead.binary_class = "acme-heads"\n')
    plugins = Plugins(only=["acme-heads", "other-heads"], environ={})
    assert plugins.find("head", "binary_class").plugin.distribution == "acme-heads"
    assert plugins.get("head", "binary_class").__module__ == "acme_heads.parts"
    assert plugins.find("head", "other-heads:binary_class").plugin.distribution == "other-heads"
    assert plugins.names("head") == ("binary_class",)


def test_an_override_replaces_a_component_of_the_core(site, policy):
    install(site, "acme-policies", kind="checkpoint_policy", name="nightly")
    policy('[plugins.overrides]\ncheckpoint_policy.cadence = "acme-policies:nightly"\n')
    plugins = Plugins(only=["acme-policies"], environ={})
    assert (
        plugins.find("checkpoint_policy", plugins.default("checkpoint_policy", "cadence")).component.name == "nightly"
    )
    assert plugins.default("hook", "nan_tensor") == "estimator-core:nan_tensor"


def test_an_override_is_met_by_no_entry_point_and_by_no_code_of_that_name(site, policy):
    install(site, "free-widgets")
    (info,) = site.glob("free_widgets-*.dist-info")
    (info / "entry_points.txt").write_text("[estimator.plugins]\nacme-heads = free_widgets.plugin\n")
    policy('[plugins.overrides]\nhead.binary_class = "acme-heads"\n')
    with pytest.raises(PluginLookupError, match=r"there is no head 'acme-heads:binary_class'"):
        Plugins(only=["free-widgets"], environ={}).find("head", "binary_class")
    given = ModuleType("acme-heads")
    vars(given).update(ESTIMATOR_PLUGIN_API=(1, 0), estimator_components=lambda: [HEAD])
    with pytest.raises(PluginLookupError, match=r"there is no head 'acme-heads:binary_class'"):
        Plugins(autoload=False, environ={}, extra=[given]).find("head", "binary_class")


def test_options_of_the_policy_reach_no_plugin_given_in_code(policy):
    given = ModuleType("acme-heads")
    vars(given).update(ESTIMATOR_PLUGIN_API=(1, 0), estimator_components=lambda: [HEAD])
    policy('[plugins.options.acme-heads]\nurl = "secret"\n')
    with pytest.raises(ArgumentError, match="options are given for plugin 'acme-heads', which is not installed"):
        Plugins(autoload=False, environ={}, extra=[given]).options("head", "binary_class")


def test_what_the_policy_forbids_stays_out_though_code_hands_it_over(site, policy):
    install(site, "free-widgets")
    module = importlib.import_module("free_widgets.plugin")
    assert Plugins(autoload=False, environ={}, extra=[module]).names("head") == ("binary_class",)
    for text in ('block = ["free-widgets"]', "allow = []"):
        policy(f"[plugins]\n{text}\n")
        assert Plugins(environ={}, only=["free-widgets"], extra=[module]).names("head") == ()


BACKEND = """
def make():
    from estimator_core.plugins import Plugins

    return Plugins(autoload=False, environ={}).get("backend", "estimator-core:cpu")()
"""


def test_an_overridden_backend_is_taken_where_nobody_chooses(site, policy):
    install(site, "acme-heads", kind="backend", name="fast", target="acme_heads.plugin:make", more=BACKEND)
    policy('[plugins.overrides]\nbackend.cpu = "acme-heads:fast"\n')
    plugins = Plugins(only=["acme-heads"], environ={})
    assert plugins.automatic("backend") == ("cpu",)
    estimator = tiny_estimator("model", plugins=plugins).train(tiny_input_fn(), steps=1)
    assert {"kind": "backend", "name": "fast", "distribution": "acme-heads"} in plugins.used()
    assert estimator.latest_checkpoint()


COMMANDS = """
from estimator_core.plugins import Command, Kind

def estimator_commands():
    return [Command(name="score-all", target="{package}.cli", summary="A fixture.")]
"""
KIND = """
def estimator_kinds():
    return [Kind(name="command", title="commands", contract="json:JSONDecoder", target="x", suite="json:JSONDecoder")]
"""


def test_an_override_gives_a_command(site, policy):
    install(site, "acme-heads", more=COMMANDS.format(package="acme_heads") + KIND)
    install(site, "other-heads", more=COMMANDS.format(package="other_heads"))
    both = {"only": ["acme-heads", "other-heads"], "environ": {}}
    with pytest.raises(PluginLookupError, match="provided by several plugins"):
        Plugins(**both).commands().find("score-all")
    policy('[plugins.overrides]\ncommand.score_all = "other-heads"\n')
    table = Plugins(**both).commands()
    assert table.find("score-all").target == "other_heads.cli"
    assert table.find("acme-heads:score-all").target == "acme_heads.cli"
    assert [name for name, _, _ in table.listed()] == ["score-all"]
    policy('[plugins.overrides]\ncommand.score_all = "gone-heads"\n')
    table = Plugins(**both).commands()
    assert table.listed() == []
    with pytest.raises(PluginLookupError, match="overrides the command 'score-all' with 'gone-heads:score-all'"):
        table.find("score-all")


def test_an_override_by_what_is_not_installed_is_an_error_and_no_fall_back(site, policy):
    install(site, "acme-heads")
    policy('[plugins.overrides]\nhead.binary_class = "acme-haeds"\n')
    with pytest.raises(PluginLookupError, match=r"says head.binary_class = 'acme-haeds': there is no head"):
        Plugins(only=["acme-heads"], environ={}).find("head", "binary_class")


def test_an_override_of_a_kind_that_nobody_defines_is_refused(site, policy):
    policy('[plugins.overrides]\nhaed.binary_class = "acme-heads"\n')
    with pytest.raises(ArgumentError, match="there is no kind of component 'haed'"):
        Plugins(autoload=False, environ={}).records()


def test_an_override_of_a_component_that_nobody_provides_is_refused(site, policy):
    own_kind = "" if "command" in Plugins(environ={}).kinds() else KIND
    install(site, "acme-heads", more=COMMANDS.format(package="acme_heads") + own_kind)
    for said, close in [
        ('head.binary_clas = "acme-heads:binary_class"', "overrides head.binary_clas: there is no head 'binary_clas'"),
        ('head.binary_clas = "acme-heads"', "Did you mean 'binary_class'"),
        ('hook.step_couter = "acme-heads:binary_class"', "Did you mean 'step_counter'"),
        ('command.score_al = "acme-heads:score_all"', "Did you mean 'score_all'"),
    ]:
        policy(f"[plugins.overrides]\n{said}\n")
        with pytest.raises(ArgumentError, match=close):
            Plugins(environ={}).records()
    policy('[plugins.overrides]\ncommand.score_all = "acme-heads:score_all"\n')
    assert Plugins(environ={}).commands().find("score-all").target == "acme_heads.cli"


@pytest.mark.parametrize(
    ("blocked", "override"),
    [
        # what a blocked plugin would provide is unknown
        ("acme-policies", 'head.binary_clas = "acme-heads:binary_class"'),
        ("", 'head.binary_clas = "gone-heads"'),
        # another machine with this policy has the plugin of this head
        ("", 'head.special = "acme-heads:binary_class"'),
    ],
)
def test_an_override_of_what_is_not_in_use_here_is_accepted(site, policy, blocked, override):
    install(site, "acme-heads")
    if blocked:
        install(site, blocked, kind="checkpoint_policy", name="nightly", more=EXPLOSIVE)
    policy(f"[plugins]\nblock = {[blocked] if blocked else []}\n[plugins.overrides]\n{override}\n")
    assert any(one.usable for one in Plugins(environ={}).records())


@pytest.mark.parametrize("said", ["[plugins]\nallow = ['acme-heads']\n", ""])
def test_a_misspelt_override_under_an_allow_list_is_not_silent(site, policy, caplog, said):
    install(site, "acme-heads")
    install(site, "free-widgets", kind="checkpoint_policy", name="nightly", more=EXPLOSIVE)
    policy(said + '[plugins.overrides]\nhook.nan_tensr = "acme-heads"\n')
    with pytest.raises(ArgumentError, match=r"overrides hook.nan_tensr: there is no hook 'nan_tensr'.\s+Did you mean"):
        Plugins(only=None if said else ["acme-heads"], environ={}).records()
    policy(said + '[plugins.overrides]\nhook.nan_tensr = "acme-heads:binary_class"\n')
    assert Plugins(only=None if said else ["acme-heads"], environ={}).records()
    told = "the policy overrides hook.nan_tensr, which no plugin in use provides; did you mean 'hook.nan_tensor'?"
    assert told in caplog.text


def test_options_come_from_the_policy_then_the_code_then_the_environment(site, policy):
    install(site, "acme-heads")
    policy('[plugins.options.Acme_Heads]\nurl = "policy"\n')

    def url(environ=None, **arguments):
        return Plugins(only=["acme-heads"], environ=environ or {}, **arguments).options("head", "binary_class")["url"]

    assert url() == "policy"
    assert url(options={"acme-heads": {"url": "code"}}) == "code"
    assert url({"ESTIMATOR_OPTION_ACME_HEADS_URL": "shell"}, options={"acme-heads": {"url": "code"}}) == "shell"


@pytest.mark.parametrize(
    ("said", "config", "joins"),
    [
        ("true", True, True),
        ("false", True, False),
        ('["acme-heads"]', True, True),
        ('["other"]', True, False),
        ('["acme-heads"]', False, False),
        ('["other"]', ("acme-heads",), False),
    ],
)
def test_hooks_join_a_run_only_where_policy_and_configuration_agree(site, policy, said, config, joins):
    install(site, "acme-heads", more=HOOKS)
    policy(f"[plugins]\ndefault_hooks = {said}\n")
    run = FakeRun(config=RunConfig(model_dir="unused", default_hooks=config))
    assert bool(Plugins(only=["acme-heads"], environ={}).run_hooks(run)) == joins


def test_strict_holds_whoever_says_otherwise(site, policy):
    install(site, "acme-heads", more="raise ValueError('broken')\n")
    policy("[plugins]\nstrict = true\n")
    with pytest.raises(PluginError, match="plugins are strict"):
        Plugins(only=["acme-heads"], strict=False, environ={"ESTIMATOR_STRICT_PLUGINS": "0"}).records()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[plugin]\n", "the unknown table 'plugin'; did you mean 'plugins'?"),
        ('[plugins]\nalow = ["a"]\n', "the unknown setting 'alow'; did you mean 'allow'?"),
        ('[plugins]\nallow = "a"\n', "allow is 'a'; it must be a list"),
        ("[plugins]\nblock = [7]\n", r"block is \[7\]; it must be a list"),
        ('[plugins]\nstrict = "yes"\n', "strict is 'yes'; it must be true or false"),
        ("[plugins]\nlock = 1\n", "lock is 1; it must be the name of a file"),
        ("[plugins]\noptions = 1\n", "options is 1; it must be a table"),
        ("[plugins]\noverrides.head = 1\n", "overrides.head is 1; it must be a table"),
        ("[plugins.overrides.head]\nbinary = 1\n", "overrides.head.binary is 1; it must name the distribution"),
        ("[plugins", "cannot be read"),
        ('plugins = "a"', "plugins is 'a'; it must be a table"),
    ],
)
def test_a_policy_that_cannot_be_read_is_an_error_with_its_file(policy, text, message):
    policy(text)
    with pytest.raises(PluginError, match=message) as caught:
        Plugins(environ={})
    assert "estimator.toml" in str(caught.value)


def test_it_is_found_above_in_the_project_and_not_beyond(policy, monkeypatch):
    project = policy("[plugins]\n")
    inner = project / "src" / "deep"
    inner.mkdir(parents=True)
    assert policy_files({}, inner) == []  # nothing connects these folders
    (project / "pyproject.toml").write_text("")
    assert policy_files({}, inner) == [str(project / "estimator.toml")]
    (inner / ".git").mkdir()
    assert policy_files({}, inner) == []  # a nested project


def test_one_that_is_named_holds_beside_that_of_the_project(site, policy, tmp_path):
    for name in ("acme-heads", "other-heads", "third-heads"):
        install(site, name)
    policy('[plugins]\nallow = ["acme-heads", "other-heads"]\nblock = ["other-heads"]\n')
    named = tmp_path / "named.toml"
    named.write_text('[plugins]\nallow = ["acme-heads", "other-heads", "third-heads"]\nblock = []\n')
    plugins = Plugins(environ={"ESTIMATOR_POLICY": str(named)})
    usable = [one.distribution for one in plugins.records() if one.usable]
    assert usable == ["estimator-core", "acme-heads"]


def test_one_that_is_named_and_not_there_is_an_error(policy):
    with pytest.raises(PluginError, match=r"the policy nowhere\.toml cannot be read"):
        Plugins(environ={"ESTIMATOR_POLICY": "nowhere.toml"})


def test_a_lock_is_looked_for_beside_the_policy(site, policy, monkeypatch):
    project = policy('[plugins]\nlock = "plugins.lock"\n')
    assert read_policy([str(project / "estimator.toml")]).locks == (str(project / "plugins.lock"),)
    monkeypatch.chdir(project)
    with pytest.raises(PluginError, match=r"locked by .*plugins\.lock, which cannot be read"):
        Plugins(autoload=False, environ={}, lock=None).records()


def test_without_the_package_that_reads_it_nothing_goes_on(policy):
    """A policy that is not read would forbid nothing."""
    policy("[plugins]\nstrict = true\n")
    program = (
        "import sys\nsys.modules['estimator_policy'] = None\nfrom estimator_core.plugins import Plugins\nPlugins()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=Path.cwd(), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "this project has a policy: the reader of" in done.stderr
    assert "pip install estimator-policy" in done.stderr


def test_a_name_that_nobody_has_is_told(site, policy, caplog):
    policy('[plugins]\nallow = ["acme-head"]\nblock = ["free-widget"]\ndefault_hooks = ["acme-trak"]\n')
    with caplog.at_level("WARNING", logger="estimator_core.plugins"):
        Plugins(environ={}).names("head")
    told = " ".join(record.getMessage() for record in caplog.records)
    assert all(f"plugin '{name}' is named" in told for name in ("acme-head", "free-widget", "acme-trak"))
