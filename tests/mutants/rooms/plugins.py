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
        old="if matches(self.block, identity):",
        new="if False:",
        tests=("test_what_is_not_selected_is_not_imported",),
    ),
    Mutant(
        name="an-allow-list-allows-all",
        guarantee="rule 18",
        file=_ROOM + "settings.py",
        old="if self.only is not None and not matches(self.only, identity):",
        new="if False:",
        tests=("test_what_is_not_selected_is_not_imported",),
    ),
    Mutant(
        name="an-entry-point-may-call-itself-what-a-list-allows",
        guarantee="rule 18",
        file=_ROOM + "discovery.py",
        old="return self.distribution or self.name",
        new="return self.name",
        tests=("test_an_allow_list_cannot_be_met_by_the_name_of_an_entry_point",),
    ),
    Mutant(
        name="options-go-to-everybody-with-the-entry-point",
        guarantee="rule 18",
        file=_ROOM + "options.py",
        old="variable = option_variable(record.owner, option.name)",
        new="variable = option_variable(record.name, option.name)",
        tests=("test_options_reach_no_other_distribution_with_that_entry_point",),
    ),
    Mutant(
        name="an-empty-allow-list-allows-all",
        guarantee="rule 18",
        file=_ROOM + "settings.py",
        old="allowed = _names(environ[ONLY]) if ONLY in environ else given",
        new="allowed = _names(environ.get(ONLY, '')) or given",
        tests=("test_an_empty_allow_list_allows_nothing",),
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
