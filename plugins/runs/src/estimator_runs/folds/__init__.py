"""Cross-validation: rows split by scikit-learn, a model_dir a fold, predictions in the order of the input."""
