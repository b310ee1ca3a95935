"""Plugins: who gives a name, who may load, and that no plugin harms another."""

from tests.mutants.record import Mutant

_ROOM = "estimator_core/_plugins/"

MUTANTS = (
    Mutant(
        name="the-first-of-two-owners-is-taken",
        guarantee="rule 18",
        file=_ROOM + "registry.py",
        old="if len(found) == 1:",
        new="if found:",
        tests=("test_two_plugins_with_one_name",),
    ),
    Mutant(
        name="a-blocked-plugin-is-imported",
        guarantee="rule 18",
        file=_ROOM + "settings.py",
        old="if matches(self.block, name, distribution):",
        new="if False:",
        tests=("test_what_is_not_selected_is_not_imported",),
    ),
    Mutant(
        name="an-allow-list-allows-all",
        guarantee="rule 18",
        file=_ROOM + "settings.py",
        old="if self.only is not None and not matches(self.only, name, distribution):",
        new="if False:",
        tests=("test_what_is_not_selected_is_not_imported",),
    ),
    Mutant(
        name="names-are-compared-letter-by-letter",
        guarantee="rule 18",
        file=_ROOM + "settings.py",
        old='return re.sub(r"[-_.]+", "-", name).lower()',
        new="return name",
        tests=("test_what_is_not_selected_is_not_imported",),
    ),
    Mutant(
        name="strict-raises-nothing",
        guarantee="rule 18",
        file=_ROOM + "loader.py",
        old="    if settings.strict:\n",
        new="    if False:\n",
        tests=("test_strict_raises_and_says_what_to_do",),
    ),
    Mutant(
        name="one-name-is-declared-twice",
        guarantee="rule 18",
        file=_ROOM + "loader.py",
        old="if key in seen:",
        new="if False:",
        tests=("test_each_is_listed_with_its_cause_and_harms_no_other",),
    ),
    Mutant(
        name="a-plugin-that-exits-ends-the-program",
        guarantee="rule 18",
        file=_ROOM + "loader.py",
        old="        except (Exception, SystemExit) as error:\n            plugin, record",
        new="        except Exception as error:\n            plugin, record",
        tests=("test_each_is_listed_with_its_cause_and_harms_no_other",),
    ),
    Mutant(
        name="a-list-may-be-one-string",
        guarantee="rule 18",
        file=_ROOM + "settings.py",
        old="    if isinstance(names, str):",
        new="    if False:",
        tests=("test_one_string_is_no_list",),
    ),
)
