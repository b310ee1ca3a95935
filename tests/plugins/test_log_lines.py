"""Tests of INFO lines of commands of other packages: they appear, and are written where the user chooses."""

import pytest

from tests.plugins.fake_site import Site

PLUGIN = """
from estimator_core.plugins import Command

def estimator_commands():
    return [Command(name="acme", target="acme_widgets.command", summary="Say hello.")]
"""
COMMAND = '''
"""Say hello."""
import logging

def configure(parser):
    pass

def run(args):
    logging.getLogger("acme_widgets.deep").info("widgets are counted")
    logging.getLogger("not_installed").info("a library talks to its developers")
    return 0
'''


@pytest.mark.parametrize(("words", "shown"), [([], True), (["--quiet"], False), (["--log-level", "warning"], False)])
def test_info_lines_of_a_third_party_command_appear(site: Site, words: list[str], shown: bool) -> None:
    site.add("acme-widgets", PLUGIN, files={"command.py": COMMAND})
    done = site.run("acme", *words)
    assert done.returncode == 0, done.stderr
    assert ("widgets are counted" in done.stderr) is shown
    assert "developers" not in done.stderr


@pytest.mark.parametrize(("words", "shown"), [([], True), (["--log-level", "warning"], False)])
def test_those_of_a_command_whose_package_is_not_that_of_the_plugin(site: Site, words: list[str], shown: bool) -> None:
    site.add("acme-plugin", PLUGIN.replace("acme_widgets.command", "acme_widgets"))
    (site.path / "acme_widgets.py").write_text(COMMAND)
    done = site.run("acme", *words)
    assert done.returncode == 0, done.stderr
    assert ("widgets are counted" in done.stderr) is shown
