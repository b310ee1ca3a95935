"""Problems of new users on the pages, in notebooks and in the terminal. Tests prevent each case, and are named here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import estimator_core as ec
from tests.command_line import bad_words
from tests.mutants import guarantees

SITE, ARCHITECTURE, WORDS, RELEASE = (
    "tests/docs/test_site.py",
    "tests/docs/test_architecture.py",
    "tests/repo/test_words.py",
    "tests/repo/test_release.py",
)
HOOKS, COMMANDS, FACADE = (
    "plugins/hooks/tests/",
    "tests/command_line/test_every_command.py",
    "tests/facade/test_facade.py",
)
NOTEBOOK, KERNEL = f"{HOOKS}test_notebook.py", f"{HOOKS}separate/check_notebook.py"
HERE = "tests/repo/test_cases_of_first_use.py"
#: The problem -> `file::test`, `session NAME` of nox, or `estimator WORDS` of the list of bad usage.
CASES: dict[str, tuple[str, ...]] = {
    # The site
    "133 of 381 public names are on no page": (
        f"{SITE}::test_every_public_name_is_on_the_site",
        f"{SITE}::test_every_public_name_has_a_contract_and_a_place",
        f"{SITE}::test_a_public_name_without_words_of_its_own_is_noticed",
    ),
    "half of the public classes and functions have no running example": (
        f"{SITE}::test_every_public_class_and_function_has_a_running_example",
        f"{SITE}::test_a_name_without_an_example_is_noticed",
        "tests/docs/test_snippets.py::test_every_python_block_runs",
    ),
    "there is no site and no search": (
        f"{SITE}::test_every_page_is_in_the_navigation",
        f"{SITE}::test_every_plugin_has_a_page_with_its_components",
        "session site",
    ),
    "there are no versions": (
        "tests/docs/test_gallery.py::test_versions_are_listed_for_the_selector",
        "session site_versions",
    ),
    "there is no catalogue of errors": (
        f"{SITE}::test_the_catalogue_has_every_error_class",
        f"{SITE}::test_the_catalogue_quotes_messages_that_exist",
        f"{COMMANDS}::test_a_failure_names_the_heading_that_explains_it",
    ),
    # The words
    "eight sentences that a technical editor sends back": (
        f"{WORDS}::test_a_bad_sentence_is_found",
        f"{WORDS}::test_no_file_has_more_faults_than_recorded",
    ),
    "30 docstrings break in mid-sentence": (f"{WORDS}::test_a_line_that_breaks_in_mid_sentence_is_found",),
    "38 messages are badly split": (f"{WORDS}::test_messages_are_read_whole",),
    "the page on architecture names rooms that do not exist, and leaves rooms out": (
        f"{ARCHITECTURE}::test_files_names_and_rooms",
        f"{ARCHITECTURE}::test_a_wrong_page_is_found",
    ),
    "its floors have another order than the import contracts": (
        f"{ARCHITECTURE}::test_floors",
        f"{ARCHITECTURE}::test_a_wrong_floor_is_found",
    ),
    "it names a hook that nothing adds": (f"{ARCHITECTURE}::test_each_station_uses_the_next",),
    # Notebooks
    "a notebook shows nothing for ten seconds": (
        f"{NOTEBOOK}::test_the_bar_is_there_from_the_start_and_the_curve_grows",
        f"{KERNEL}::test_the_bar_names_what_it_waits_for_from_the_first_second",
        "session notebook",
    ),
    "then it shows plain lines": (f"{KERNEL}::test_the_curve_grows",),
    "an interrupt ends in a traceback": (
        f"{NOTEBOOK}::test_an_interrupt_is_one_line_in_a_notebook",
        f"{KERNEL}::test_an_interrupt_ends_in_one_line",
    ),
    "History prints every row": (f"{NOTEBOOK}::test_history_and_estimator",),
    "an Estimator is an address": (f"{KERNEL}::test_tables_stand_in_the_place_of_addresses",),
    "the signature of RunConfig is (*args, **given)": (
        f"{FACADE}::test_the_signature_of_a_run_config_is_that_of_its_fields",
    ),
    "dir(ec) shows Any and importlib": (f"{FACADE}::test_dir_shows_public_names_only",),
    # The terminal
    "run --hook logging_tensor is a TypeError": (
        "estimator run {dir}/line.py --model-dir {dir}/m --hook logging_tensor",
        "plugins/experiment/tests/test_named_component.py::test_what_needs_a_program_is_refused_with_the_reason",
    ),
    "estimator trian has no suggestion, and the status of a failure": ("estimator trian",),
    "plugins explain head nope exits with 0": (f"{COMMANDS}::test_what_is_found_and_what_is_not",),
    "launch -- false is silent": (
        "estimator launch -- false",
        "plugins/launchers/tests/test_local.py::test_how_it_ends",
    ),
    "hints say `uv run` outside a checkout": (f"{HERE}::test_no_package_sends_its_users_to_uv",),
    "--log-level is refused after the command": (f"{COMMANDS}::test_levels_after_the_command",),
    "cuda has no hint to gpu": (
        "estimator run {dir}/line.py --model-dir {dir}/m --set run_config.backend=cuda --schedule train",
    ),
    "the error about an unknown schedule lists things that are not schedules": (
        "estimator run {dir}/line.py --model-dir {dir}/m --schedule fly",
        "estimator run {dir}/line.py --model-dir {dir}/m --schedule train_hooks",
    ),
    # Pictures
    "HPARAMS of TensorBoard: no hparams data was found": (
        f"{HOOKS}test_tensorboard.py::test_the_params_of_an_estimator_are_hyperparameters",
    ),
    "TensorBoard has no graph": (f"{HOOKS}test_tensorboard.py::test_the_graph_has_the_variables_in_their_blocks",),
    "precision and recall are pictures only": (
        "plugins/heads/tests/test_plots.py::test_the_data_of_the_precision_recall_curve",
    ),
    # Packages
    "wheels have no addresses of the project": (f"{RELEASE}::test_every_package_names_its_addresses",),
    "34 relative links of the README are dead on an index": (
        f"{RELEASE}::test_a_build_repeats_bit_for_bit_and_its_readme_works_on_an_index",
        f"{RELEASE}::test_readmes_of_plugins_have_links_that_work_anywhere",
    ),
    "a page says `pip install` of packages that are on no index": (
        "tests/docs/test_first_hour.py::test_every_walk_begins_with_what_it_installs",
        "session first_hour",
    ),
    "`mode: ec.ModeKeys` is a type error at EstimatorSpec(mode)": (
        f"{HERE}::test_a_mode_may_be_annotated",
        "session types",
    ),
    # Further requests
    "the search finds ten words, light and dark, on a narrow screen, without an error of the console": (
        "session site",
    ),
    "sixty sentences before and after": (
        "tests/repo/test_words.py::test_the_page_on_style_shows_sixty_pairs_that_pass",
    ),
    "a new user's hour by the pages alone": (
        "tests/docs/test_first_hour.py::test_every_walk_begins_with_what_it_installs",
        "session first_hour",
    ),
    "tables of metrics, configurations, histories, checkpoints and exports": (
        f"{NOTEBOOK}::test_metrics_and_other_dictionaries",
        f"{NOTEBOOK}::test_the_table_of_a_config_begins_with_what_was_changed",
        f"{NOTEBOOK}::test_history_and_estimator",
    ),
    "the terminal names what a call waits for, with its seconds": (
        f"{HOOKS}test_waiting.py::test_the_stages_of_a_resumed_training",
        f"{HOOKS}test_waiting.py::test_lines_tell_of_a_long_wait_only",
    ),
    "--quiet, -v and --log-level, before and after the command": (
        f"{COMMANDS}::test_levels_after_the_command",
        f"{HOOKS}test_waiting.py::test_quiet_shows_nothing",
    ),
    "--json, --debug and the switches of plugins, before and after the command": (
        f"{COMMANDS}::test_json_before_and_after",
        f"{COMMANDS}::test_debug_shows_the_traceback",
        f"{COMMANDS}::test_plugin_switches_before_and_after",
    ),
    "--no-color and NO_COLOR": (f"{COMMANDS}::test_the_environment_is_put_back",),
    "exit codes of wrong words, of failures and of what can continue": (
        f"{COMMANDS}::test_a_wrong_argument_is_another_code_than_a_failure",
        f"{COMMANDS}::test_a_failure_names_the_heading_that_explains_it",
    ),
    "120 bad usages end in one line": (
        "tests/command_line/test_bad_usage.py::test_it_is_refused_in_one_line",
        "tests/command_line/test_bad_usage.py::test_there_are_enough_cases_and_some_of_every_command",
    ),
    "completion in bash, fish and zsh": tuple(
        f"plugins/terminal/tests/test_completion.py::test_{one}"
        for one in ("bash_completes", "fish_completes", "zsh_completes")
    ),
    "evaluate and export take the program from the run record": (
        "plugins/experiment/tests/test_evaluate.py::test_every_checkpoint_by_slice_as_the_run_record_says",
        "plugins/experiment/tests/test_evaluate.py::test_an_export_of_the_program_that_the_run_record_names",
    ),
    "the doctor names versions, devices, directories and a package that was replaced": tuple(
        f"plugins/terminal/tests/test_doctor.py::test_{one}"
        for one in (
            "versions_that_do_not_fit",
            "each_device_computes",
            "a_directory_that_cannot_be_written_to",
            "packages_that_were_replaced",
            "a_failure_names_what_was_replaced",
        )
    ),
    "histograms of several steps in one picture": (
        "tests/builtin_hooks/test_event_hooks.py::test_summaries",
        f"{HOOKS}test_tensorboard.py::test_the_histograms_of_the_variables_follow_each_other",
    ),
    "pictures of several evaluations lie on each other": (
        "plugins/heads/tests/test_plots.py::test_the_data_of_the_precision_recall_curve",
    ),
    "a page is written over the rows that a command reads": (
        "estimator inputs inspect {dir}/data.csv --html {dir}/data.csv",
        "estimator plugins lock {dir}/data.csv",
    ),
    "a page of a run, with curves, results, goodput, hooks, checkpoints, exports and environment": (
        "plugins/report/tests/test_run_sections.py::test_where_the_time_went",
        f"{HOOKS}runs/test_loop_seams.py::test_goodput_accounts_for_every_second_once",
        "plugins/report/tests/test_page.py::test_a_browser_shows_it",
    ),
    "bills of materials, and a statement that names a later change": (
        "tests/repo/test_provenance.py::test_a_change_after_the_statement_is_named",
        "tests/repo/test_provenance.py::test_a_bill_lists_what_the_package_requires",
        "session release",
    ),
}


def wrong(root: Path, holder: str) -> list[str]:
    """Returns the missing part of a test, a session or a case of bad usage."""
    kind, _, name = holder.partition(" ")
    if kind == "session":
        files = (root / "noxfile.py", *sorted((root / ".ci").glob("*.py")))
        found = any(re.search(rf"@nox\.session.*\ndef {name}\(", path.read_text()) for path in files)
        return [] if found else [f"there is no session {name}"]
    if kind == "estimator":
        return [] if name in dict(bad_words.CASES) else [f"bad_words.py has no {name!r}"]
    file, _, test = holder.partition("::")
    return guarantees.missing(root, file, test, None)


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_tests(root: Path, case: str) -> None:
    assert CASES[case]
    assert [fault for holder in CASES[case] for fault in wrong(root, holder)] == []


@pytest.mark.parametrize(
    "holder", ["session sight", "estimator trains", f"{SITE}::test_nothing", "tests/gone.py::test_x"]
)
def test_a_wrong_holder_is_found(root: Path, holder: str) -> None:
    assert len(wrong(root, holder)) == 1


def test_no_package_sends_its_users_to_uv(root: Path) -> None:
    """A user who installed wheels may not have uv, so no string of a package may name it in a command."""
    folders = [root / "estimator_core", *root.glob("plugins/*/src")]
    files = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    assert len(files) > 500
    assert [path for path in files if re.search(r"\buv (?:run|sync)\b", path.read_text(encoding="utf-8"))] == []


def test_a_mode_may_be_annotated(root: Path) -> None:
    """The session `types` checks the example. This test only checks that the example still annotates its mode, and that
    the type is valid.
    """
    tree = ast.parse((root / "examples" / "digits_convnet.py").read_text(encoding="utf-8"))
    (model_fn,) = (one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == "model_fn")
    assert [ast.unparse(one.annotation) for one in model_fn.args.args if one.annotation] == ["ec.ModeKeys"]
    assert issubclass(ec.ModeKeys, str)
