"""Which devices, and where arrays lie on them."""

from tests.mutants.record import Mutant

_ROOM = "estimator_core/_backends/"

MUTANTS = (
    Mutant(
        name="auto-takes-the-worst-backend",
        guarantee="rule 28",
        file=_ROOM + "devices.py",
        old="best = max(priority for priority, _ in found)",
        new="best = min(priority for priority, _ in found)",
        tests=("test_auto_takes_the_best_that_is_there",),
    ),
    Mutant(
        name="another-backend-than-asked-for-is-taken",
        guarantee="rule 28",
        file=_ROOM + "devices.py",
        old="if not isinstance(probed, Available):",
        new="if False:",
        tests=("test_a_backend_that_is_not_there_is_refused_with_its_reason",),
    ),
    Mutant(
        name="one-of-two-equal-backends-is-taken",
        guarantee="rule 28",
        file=_ROOM + "devices.py",
        old="if len(winners) > 1:",
        new="if False:",
        tests=("test_two_equal_backends_are_refused",),
    ),
    Mutant(
        name="a-broken-backend-ends-auto",
        guarantee="rule 28",
        file=_ROOM + "devices.py",
        old="except PluginError as error:",
        new="except ZeroDivisionError as error:",
        tests=("test_auto_takes_the_best_that_is_there",),
    ),
    Mutant(
        name="a-rule-matches-part-of-a-name",
        guarantee="rule 28",
        file=_ROOM + "partition.py",
        old="if re.fullmatch(pattern, variable.name)",
        new="if re.match(pattern, variable.name)",
        tests=("test_rules_decide_by_the_whole_name_and_the_first_wins",),
    ),
    Mutant(
        name="the-last-rule-decides",
        guarantee="rule 28",
        file=_ROOM + "partition.py",
        old="for pattern, spec in self.rules if",
        new="for pattern, spec in reversed(self.rules) if",
        tests=("test_rules_decide_by_the_whole_name_and_the_first_wins",),
    ),
    Mutant(
        name="an-axis-that-does-not-divide-is-split",
        guarantee="rule 28",
        file=_ROOM + "partition.py",
        old="if size % parts:",
        new="if False:",
        tests=("test_what_does_not_divide_stays_whole_and_is_noted",),
    ),
    Mutant(
        name="annotations-win-over-nothing",
        guarantee="trap 24",
        file=_ROOM + "partition.py",
        old="if variable.sharding is not None:",
        new="if False:",
        tests=("test_annotations_hold_where_no_rule_matches_and_lacking_axes_are_dropped",),
    ),
    Mutant(
        name="axes-that-the-mesh-lacks-stay",
        guarantee="trap 24",
        file=_ROOM + "partition.py",
        old="axes = [axis for axis in named if axis in self.sizes]",
        new="axes = list(named)",
        tests=("test_annotations_hold_where_no_rule_matches_and_lacking_axes_are_dropped",),
    ),
    Mutant(
        name="a-mesh-may-be-larger-than-its-devices",
        guarantee="rule 28",
        file=_ROOM + "placement.py",
        old="if needed > len(devices):",
        new="if False:",
        tests=("test_a_mesh_without_enough_devices_is_refused",),
    ),
)
