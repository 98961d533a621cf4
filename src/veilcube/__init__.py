"""Differentially private releases that answer count queries with intervals."""
