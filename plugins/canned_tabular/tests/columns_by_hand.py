"""Computes the values of columns for a batch without an estimator of the package."""

import numpy as np

import estimator_canned_tabular as tab
import estimator_core as ec


def host_ids(column, **features):
    """The ids of a categorical column."""
    return column.host_ids({name: np.asarray(value) for name, value in features.items()}).ids.tolist()


def outputs(columns, features, tmp_path):
    """The output of `dense_features` for some columns."""
    columns = list(columns)
    plan = tab.FeaturePlan.of(columns)

    def model_fn(features, labels, mode):
        made = tab.dense_features(columns, features, plan, scope="input", row_sparse=False)
        return ec.EstimatorSpec(mode, predictions={"made": made})

    model_fn.host_transforms = plan.transforms()
    config = ec.RunConfig(model_dir=str(tmp_path), allow_untrained=True, default_hooks=False)
    arrays = {name: np.asarray(value) for name, value in features.items()}
    (batch,) = ec.Estimator(model_fn, config=config).predict(lambda: [arrays], yield_single_examples=False)
    return batch["made"]
