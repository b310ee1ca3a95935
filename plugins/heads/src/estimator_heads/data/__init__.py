"""The contract of a head with its data: labels as they come, checks on the host, what is learned and kept."""
