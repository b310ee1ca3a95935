"""The host part of feature columns, which converts strings and numbers to ids."""
