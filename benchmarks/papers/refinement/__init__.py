"""The examples of Linear Refinement (PAKDD 2013) with the corrected loss, and the bars of refinement.

Run: python -m benchmarks.papers.refinement [--quick] [--only privacy] [--out DIR]

privacy   Example 1 (2 epsilon), the appendix ((k+1) epsilon / 2) and the grades: the loss by the linear program, beside
          the densities of refined answers, simulated, under two neighbouring tables
gains     what common facts leave of the variance of cells, ranges and marginals, by strategy
errors    refined beside unrefined answers on four tables: true equalities, and inequalities
speed     a cube of a million cells refined with ten thousand known counts: seconds and memory

Tables are those of the benchmark of ISPE, made and about nobody. Releases are drawn from the real source of noise, so
no two runs agree exactly; the simulated densities have a seed.
"""
