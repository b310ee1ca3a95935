"""What is in a file of examples: columns, statistics, rows."""
