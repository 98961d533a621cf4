"""Benchmarks of size: rows, cells, charges, past answers."""
