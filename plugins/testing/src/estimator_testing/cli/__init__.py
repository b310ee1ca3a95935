"""The commands `estimator new-plugin` and `estimator doctor`: every other file is one of them or a part of one."""
