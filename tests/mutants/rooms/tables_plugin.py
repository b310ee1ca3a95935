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
)
