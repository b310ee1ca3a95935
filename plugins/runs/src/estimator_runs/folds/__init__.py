"""Cross-validation: rows split by scikit-learn, a model_dir for each fold, predictions in the order of the input."""
