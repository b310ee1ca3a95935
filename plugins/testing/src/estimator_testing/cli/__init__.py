"""The commands `estimator new-plugin` and `estimator plugins doctor`: each other file is one or a part of one."""
