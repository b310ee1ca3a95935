"""The commands `estimator plugins lock` and `estimator plugins policy`."""
