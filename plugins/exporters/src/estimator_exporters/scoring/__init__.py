"""Batch scoring: a signature of an export scores the rows of files and writes a file, in bounded memory."""
