"""Problems of users of tf.estimator who ported their programs. Tests prevent each case, and are named here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import guarantees

BERT, TABULAR, HEADS, MIGRATION = (
    f"plugins/{name}/tests/" for name in ("canned_bert", "canned_tabular", "heads", "migration")
)
WARM_START, EXPERIMENT = (f"plugins/{name}/tests/" for name in ("warm_start", "experiment"))
NAMES, AS_THERE, COLUMNS, TABLE = (
    "tests/facade/test_names_of_tf_estimator.py",
    f"{HEADS}test_as_in_tensorflow_1.py",
    f"{TABULAR}test_column_values.py",
    f"{MIGRATION}test_table.py",
)
#: The problem -> file, test, and case of the test.
CASES: dict[str, tuple[tuple[str, str, str | None], ...]] = {
    "a model_dir of TensorFlow is ignored, and files are mixed with its own": (
        (f"{WARM_START}test_tensorflow.py", "test_a_model_dir_with_one_is_never_ignored", None),
    ),
    "warm_start_from a directory of TensorFlow: there is no checkpoint": (
        (f"{WARM_START}test_tensorflow.py", "test_warm_start_from_reads_it", None),
        (f"{WARM_START}test_tensorflow.py", "test_init_from_checkpoint_reads_it", None),
    ),
    "the exact reader of TensorFlow's checkpoints is in canned_bert only": (
        (f"{WARM_START}test_tensorflow.py", "test_load_variables_reads_it", None),
        (f"{WARM_START}test_tensorflow.py", "test_every_type_of_number_is_read", None),
    ),
    "optimizer slots are not carried over": (
        (f"{MIGRATION}test_checkpoints.py", "test_training_goes_on_as_there", None),
        (f"{MIGRATION}test_checkpoints.py", "test_slots_of_the_optimizers_of_tensorflow_1", None),
    ),
    "get_assignment_map_from_checkpoint claims all variables in every trace but the first": (
        (f"{WARM_START}test_init_from_checkpoint.py", "test_the_assignment_map_is_the_same_in_every_trace", None),
        (f"{WARM_START}test_tensorflow.py", "test_init_from_checkpoint_reads_it", None),
    ),
    "who freezes what was loaded gets a head that never learns": (
        ("tests/loop/test_traces_agree.py", "test_what_differs_between_traces_is_refused_by_name", "trained"),
        ("tests/loop/test_traces_agree.py", "test_what_differs_between_traces_is_refused_by_name", "initialised"),
    ),
    "a subclassed keras.Model works only if it was called before": (
        ("plugins/modules/tests/test_keras.py", "test_a_subclass_need_not_be_called_before", None),
    ),
    "model_to_estimator of a subclassed keras.Model: AttributeError": (
        (f"{TABULAR}test_keras_models.py", "test_a_subclass_trains_as_fit_does_once_it_was_called", None),
    ),
    "an evaluation at the step of a checkpoint does not count, and the last is exported as the best": (
        (
            f"{EXPERIMENT}test_chosen_results.py",
            "test_an_evaluation_due_at_the_step_of_a_checkpoint_is_one_of_it",
            None,
        ),
        (f"{EXPERIMENT}test_chosen_results.py", "test_losses_that_only_grow_leave_the_first_checkpoint_the_best", None),
        ("plugins/hooks/tests/runs/test_early_stopping_runs.py", "test_restore_best_among_what_checkpoints_hold", None),
    ),
    "a worse step is exported as the best without a word": (
        (
            "plugins/exporters/tests/test_training.py",
            "test_a_better_result_between_checkpoints_keeps_the_best_one_that_there_is",
            None,
        ),
    ),
    "crossed_column differs by default for dense features": (
        (COLUMNS, "test_a_cross_of_dense_features_and_unknown_words_has_the_buckets_of_tensorflow_2_15_1", None),
    ),
    "the table maps after_create_session of an IteratorInitializerHook to after_create": (
        (TABLE, "test_what_loads_the_data_of_an_input_does_it_in_begin", None),
        (
            "plugins/hooks/tests/test_one_call_hooks.py",
            "test_iterator_initializer_is_called_once_before_the_first_step",
            None,
        ),
    ),
    "no row for ModeKeys.INFER, hooks, exporters, heads, TPUEstimator, optimize_loss, slim": (
        (TABLE, "test_what_had_no_row_has_one", None),
        (TABLE, "test_every_public_symbol_has_a_row_of_its_own", None),
        (NAMES, "test_modes_of_contrib_learn", None),
    ),
    "no row for tf_metrics and Horovod": ((TABLE, "test_other_packages_have_rows_that_say_how", None),),
    "RunConfig refuses the defaults of the original": (
        (NAMES, "test_run_config_takes_the_defaults_of_the_original", None),
    ),
    "RunConfig refuses one name at a time": ((NAMES, "test_all_that_run_config_refuses_is_named_at_once", None),),
    "config.num_worker_replicas": ((NAMES, "test_properties_of_clusters_say_where_they_are", None),),
    "export_savedmodel, as_text=": ((NAMES, "test_the_old_name_of_the_export", None),),
    "TrainSpec(fn, 100)": ((NAMES, "test_train_spec_by_position", None),),
    'RunConfig("dir")': ((NAMES, "test_run_config_by_position", None),),
    "Scaffold(saver=None)": ((NAMES, "test_scaffold_without_a_saver", None),),
    "CheckpointSaverHook(checkpoint_dir=)": ((NAMES, "test_checkpoint_saver_hook_writes_into_the_model_dir", None),),
    "ec.BestExporter: a bare AttributeError": (
        (NAMES, "test_names_that_are_elsewhere_answer_with_their_home", "BestExporter"),
        (NAMES, "test_the_homes_exist", None),
        (TABLE, "test_every_name_that_is_typed_on_ec_answers", None),
    ),
    "make_batched_features_dataset(shuffle=False, shuffle_buffer_size=None) is refused": (
        ("plugins/inputs/tests/test_examples.py", "test_no_buffer_is_needed_where_nothing_is_shuffled", None),
    ),
    "an input that cannot be is refused at step 100": (
        (f"{EXPERIMENT}test_rehearsal.py", "test_every_fault_is_told_at_once_and_nothing_is_written", None),
        (f"{EXPERIMENT}test_rehearsal.py", "test_a_run_is_tried_unless_that_is_switched_off", None),
        (f"{EXPERIMENT}test_script_trial.py", "test_all_faults_of_a_program_are_told_at_once", None),
    ),
    "class_precision takes the fourth argument as weights": (
        (AS_THERE, "test_positional_indices_of_tf_metrics_are_refused_by_name", None),
    ),
    "averages are macro where those of tf_metrics are micro": (
        (f"{HEADS}test_metrics_classes.py", "test_precision_recall_f_beta", "micro"),
        (TABLE, "test_other_packages_have_rows_that_say_how", None),
    ),
    "recall_at_k refuses class ids": ((AS_THERE, "test_recall_at_k_takes_class_ids", None),),
    "a cross drops a word that its vocabulary does not know": (
        (COLUMNS, "test_a_cross_of_dense_features_and_unknown_words_has_the_buckets_of_tensorflow_2_15_1", None),
        (f"{TABULAR}test_random_tables.py", "test_as_recorded", None),
    ),
    "hash_key=0 hashes with 0": ((COLUMNS, "test_a_hash_key_of_0_is_the_default_key_as_in_the_original", None),),
    "a row without any category moves row 0 there and nothing here": (
        (f"{TABULAR}test_random_tables.py", "test_by_default_a_row_without_a_category_moves_nothing", None),
        (f"{TABULAR}test_random_tables.py", "test_as_recorded", None),
    ),
    "sensitivity_at_specificity and specificity_at_sensitivity are those of Keras": (
        (AS_THERE, "test_the_nearest_operating_point_is_that_of_tensorflow_1", "sensitivity_at_specificity"),
        (AS_THERE, "test_the_nearest_operating_point_is_that_of_tensorflow_1", "specificity_at_sensitivity"),
    ),
    "r_squared is 0 and pearson_correlation NaN where the spread is small beside the mean": (
        (f"{HEADS}test_metrics_numbers.py", "test_spread_is_seen_at_any_offset", None),
    ),
    "accuracy is 0 for one infinite weight": ((AS_THERE, "test_accuracy_with_an_infinite_weight_is_no_number", None),),
    "adagrad(initial_accumulator_value=0) is off": ((AS_THERE, "test_adagrad_from_an_accumulator_of_0", None),),
    "from estimator_canned_bert import * imports nothing": (
        (f"{BERT}test_names.py", "test_a_star_imports_every_public_name", None),
    ),
    "200 lines of orbax and absl at INFO": (
        ("tests/checkpoint/test_chatter.py", "test_orbax_does_not_tell_how_it_works", None),
    ),
    "there is no BertModel to call in a model_fn": (
        (f"{BERT}test_bert_model.py", "test_it_is_the_encoder_with_the_variables_of_the_original", None),
        (f"{BERT}test_bert_model.py", "test_pretrained_weights_fill_it", None),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_tests(root: Path, case: str) -> None:
    assert CASES[case]
    for file, test, parameter in CASES[case]:
        assert guarantees.missing(root, file, test, parameter) == []
