"""One package for each paper: its claims, our run of its experiments, and whether they hold."""
