"""The experiments of Privelet (Xiao, Wang and Gehrke 2011, section 8) on census-shaped data that are about nobody.

Run: python -m benchmarks.papers.privelet [--quick] [--all] [--only accuracy] [--epsilon 0.5] [--out DIR]

Accuracy is measured on two cubes of the paper's shapes, 10 and 8 million rows, with 40,000 of its random queries: Basic
(the identity), Privelet+ and Privelet* with the paper's flat attributes, with those that our planner chooses for such
queries ("auto") and with those that it chooses when it is told nothing ("untold"), and our tree beside them. Then come
the bars of this library: time against rows and cells, speed beside numpy, memory of the command line, queries a second,
and measured variance beside the exact one. Accuracy and time take "replace" neighbours, as the paper does. The whole
run takes a quarter of an hour on two free cores and up to 8 GB; --quick takes seconds and proves only that it runs.
Noise comes from the real source, so no two runs agree exactly; tables and queries are the same every time.
"""
