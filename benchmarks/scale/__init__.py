"""Benchmarks of what grows: rows, cells, charges and those who write them."""
