"""The contract with the data: what each column is, learned from some rows, kept in a file that a person edits."""
