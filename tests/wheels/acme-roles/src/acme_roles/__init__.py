"""Components for three roles of the core: checkpoint policy, log and export check."""
