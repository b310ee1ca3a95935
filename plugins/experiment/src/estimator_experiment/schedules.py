"""The names of the methods of Experiment that a schedule may name."""

SCHEDULES = (
    "continuous_eval",
    "continuous_eval_on_train_data",
    "continuous_train_and_eval",
    "evaluate",
    "run_std_server",
    "test",
    "train",
    "train_and_evaluate",
)
