"""The part of feature columns that runs on the host: strings and numbers become ids."""
