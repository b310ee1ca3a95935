"""Tables of rows: what their cache shows."""

from tests.mutants.record import Mutant

MUTANTS = (
    Mutant(
        name="rows-that-the-host-has-count-as-hits",
        guarantee="rule 183",
        file="plugins/tables/src/estimator_tables/cache.py",
        old="jnp.stack([hits.sum(), (hits | misses).sum()])",
        new="jnp.stack([(hits | misses).sum(), (hits | misses).sum()])",
        tests=("test_a_step_shows_which_part_of_the_rows_of_the_one_before_the_cache_had",),
        in_cut=False,
    ),
    Mutant(
        name="a-growing-table-hides-the-hits-of-its-cache",
        guarantee="rule 183",
        file="plugins/tables/src/estimator_tables/fresh_rows.py",
        old='getattr(self.access, "summaries", lambda _: {})(table)',
        new="{}",
        tests=("test_tables_without_a_cache_show_no_hits_and_growing_ones_do",),
        in_cut=False,
    ),
    Mutant(
        name="the-host-of-a-gpu-writes-rows",
        guarantee="rule 199",
        file="plugins/tables/src/estimator_tables/rows.py",
        old='write if jax.default_backend() == "gpu" else computed_by_host(write)',
        new="computed_by_host(write)",
        in_cut=False,
    ),
    Mutant(
        name="a-step-with-a-table-on-the-host-is-compiled-for-absent-cards",
        guarantee="rule 198",
        file="plugins/plan/src/estimator_plan/training_plan.py",
        old="if compiles and step.lookups and not has_host_memory(devices):",
        new="if False:",
        tests=("test_tables_of_the_host_are_bounded_where_no_program_can_have_them",),
        in_cut=False,
    ),
    Mutant(
        name="a-stand-in-has-no-memory-that-jax-knows",
        guarantee="rule 198",
        file="plugins/plan/src/estimator_plan/stand_ins.py",
        old='for kind in ("device", "pinned_host", "unpinned_host")',
        new='for kind in ("device",)',
        tests=("test_tables_of_the_host_are_bounded_where_no_program_can_have_them",),
        in_cut=False,
    ),
    Mutant(
        name="an-element-counts-as-its-tuple",
        guarantee="rule 176",
        file="plugins/plan/src/estimator_plan/hlo.py",
        old="arrays=arrays[int(index) : int(index) + 1],",
        new="arrays=arrays,",
        tests=("test_an_element_of_a_tuple_counts_and_not_the_tuple",),
        in_cut=False,
    ),
    Mutant(
        name="gradients-of-other-rows-are-lost",
        guarantee="rule 226",
        file="estimator_core/_step/optimizer.py",
        old="if any(isinstance(node, _FOR_LATER) for node in nodes):",
        new="if False:",
        tests=("test_gradients_that_wait_for_a_step_of_other_rows_are_refused",),
        in_cut=False,
    ),
)
