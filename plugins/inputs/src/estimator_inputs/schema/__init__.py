"""The schema of data: the kind of each column, learned from rows and stored in a file that users can edit."""
