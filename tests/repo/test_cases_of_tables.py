"""Problems of users of tables before the contract with the data existed. Tests prevent each case, and are named
here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import guarantees

TABULAR, INPUTS, SCORING = (f"plugins/{name}/tests/" for name in ("canned_tabular", "inputs", "exporters"))
COMMAND, AS_IT_COMES = f"{TABULAR}test_command.py", f"{TABULAR}test_data_as_it_comes.py"
#: The problem -> file, test, and case of the test.
CASES: dict[str, tuple[tuple[str, str, str | None], ...]] = {
    "an empty number that training filled stops `estimator predict` on the same file": (
        (COMMAND, "test_train_evaluate_export_predict", None),
        (f"{SCORING}test_scoring.py", "test_rows_are_treated_as_in_training", None),
    ),
    "outputs are lists in cells": (
        (f"{SCORING}test_scoring.py", "test_one_column_a_class_and_the_predicted_class", None),
    ),
    "a missing column prints the row": (
        (f"{SCORING}test_scoring.py", "test_a_bad_row_is_named_and_nothing_is_left", None),
    ),
    "labels 1 to 3 are a NaN loss": ((AS_IT_COMES, "test_labels_as_they_come", None),),
    "NaN or infinity in a number is a NaN loss": ((AS_IT_COMES, "test_wrong_numbers_are_refused", None),),
    "an evaluation is nan without a word": (
        (AS_IT_COMES, "test_wrong_numbers_are_refused", None),
        ("tests/loop/test_debug.py", "test_a_loss_of_an_evaluation_that_is_nan_is_told", None),
    ),
    "only debug=True names the label": ((AS_IT_COMES, "test_wrong_labels_are_refused", None),),
    "labels of one column are called strings": ((AS_IT_COMES, "test_labels_of_a_frame_of_one_column", None),),
    "a text, date, time span or list is called an absent feature": (
        (AS_IT_COMES, "test_wrong_numbers_are_refused", None),
    ),
    "labels that are texts ask for an argument that there is not": (
        (AS_IT_COMES, "test_labels_as_they_come", None),
        (AS_IT_COMES, "test_wrong_labels_are_refused", None),
    ),
    "feature_columns=['num'], a single column, hidden_units=8: errors of Python": (
        (f"{TABULAR}test_column_errors.py", "test_refused", None),
        (f"{TABULAR}test_column_errors.py", "test_sizes_may_be_numbers_of_numpy", None),
    ),
    "an Int64 column that nobody reads stops a DataFrame": (
        (AS_IT_COMES, "test_a_column_that_nobody_reads_may_be_anything", None),
    ),
    "inspect drops rows with an empty cell from all columns": (
        (f"{INPUTS}test_inspect.py", "test_rows_with_an_empty_cell_count_in_all_other_columns", None),
    ),
    "PassengerId is a feature": ((COMMAND, "test_identifiers_are_no_features", None),),
    "missing numbers are filled by hand, again at serving": (
        (f"{TABULAR}test_missing_numbers.py", "test_the_same_everywhere", None),
    ),
    "a NaN label at step 11 names a checkpoint and no step": (
        ("tests/loop/test_debug.py", "test_the_step_is_named_where_the_input_ends_before_anybody_looks", None),
        (AS_IT_COMES, "test_a_label_that_is_nan_late_in_a_stream", None),
    ),
    "damaged files are errors of libraries below": (
        (f"{INPUTS}test_mutated_files.py", "test_mutated_files", None),
        (f"{INPUTS}test_mutated_files.py", "test_many_mutated_files", None),
        (f"{INPUTS}test_bad_rows.py", "test_a_damaged_compressed_file_is_named", None),
        (f"{INPUTS}test_bad_rows.py", "test_the_place_of_damage_in_a_compressed_file_is_told", None),
    ),
    "a wrong number of fields, or bytes that are no UTF-8, stop on_error='skip'": (
        (f"{INPUTS}test_bad_rows.py", "test_csv", None),
    ),
    "gs://, s3://, https://, hf://: no file matches": (
        (f"{INPUTS}test_urls.py", "test_files_at_a_url_are_read", None),
        (f"{INPUTS}test_urls.py", "test_other_urls_are_refused_by_name", None),
    ),
    "polars: must be a pandas DataFrame; got DataFrame": (
        (f"{INPUTS}test_forms.py", "test_tables", None),
        (f"{INPUTS}test_pandas.py", "test_other_types_are_refused", None),
    ),
    "(x, y, sample_weight) of Keras is refused": ((f"{INPUTS}test_forms.py", "test_batches_of_keras", None),),
    "a Hugging Face dataset works only in a way that no page names": (
        (f"{INPUTS}test_forms.py", "test_tables", "Hugging Face"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_tests(root: Path, case: str) -> None:
    assert CASES[case]
    for file, test, parameter in CASES[case]:
        assert guarantees.missing(root, file, test, parameter) == []
