"""The experiments of TR-2010-003 (distributive queries) and the bars of ranks, quantiles and parities, on made-up data.

Run: python -m benchmarks.papers.distributive [--quick] [--only maximum] [--out DIR]

intervals  Table 1 (rows that are enough), Table 2 (error against epsilon) and figures 2 to 9: 1-D and 2-D intervals on
           census-shaped data, the paper's release (cells truncated at zero) beside ours and beside a tree
parity     figures 10 to 12: d = 8, v = 0000011, 100,000 rows; both learners, and a transform over 20 attributes
maximum    figures 13 to 16: a clipped Gaussian on 1..100; the published mechanism, whose promise fails, beside ours
quantiles  99 quantiles of a million rows: one budget, split or tree, beside independent draws and a tree release

The paper's alpha is our epsilon, and its epsilon our error. Noise comes from the real source, so no two runs agree
exactly; the tables are the same every time.
"""
