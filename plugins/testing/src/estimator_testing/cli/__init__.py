"""The commands `estimator new-plugin` and `estimator plugins doctor`. Each other file is a command or a part of one."""
