"""Batch scoring: rows of files through a signature of an export into a file, in bounded memory."""
