"""The contract of a head with its data: forms of labels, checks on the host, and facts that are learned and stored."""
