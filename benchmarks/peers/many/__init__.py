"""Tables of many attributes: our errors beside those of other programs, or our strategies beside each other.

Run: python -m benchmarks.peers.many [--data DIR] [--table NAME] [--epsilon 1] [--delta 1e-9 | --pure] [--strategy auto]
[--runs 2] [--most-tables N] [--json FILE]
or:  python -m benchmarks.peers.many --generated [--rows N] [--questions 300], with the same options

DIR holds, for each table, NAME.json (columns, sizes, kinds: num for ordered codes, cat for others), NAME.parquet
(whole-number codes), NAME.workload.json (pairs, triples, and under range, from "1" to "4", conjunctions with low and
high) and NAME.truth.npz (their true counts, r1 to r4). It may hold peers.csv, the errors of other programs on the same
questions (dataset, algo, epsilon, delta, workload, metric, value). None of it is part of this repository; without
--data, ../shared/data/many is read if it is there.

Six kinds of questions are asked: all cells of tables of 2 and of 3 attributes (mean total variation from the true
table) and conjunctions on 1 to 4 attributes (root mean squared error in rows). Coverage and widths are those of 95%
intervals, for tables over all cells of at most 20 of them; width/rmse is the mean half-width over the root mean squared
error of the same answers. The best peer is the smallest figure in peers.csv, over programs and their seeds, chosen with
hindsight for each kind; ours are geometric means over the runs. A table that a release refuses to give whole is asked
in slices, and the output says so.

Without such a folder, or with --generated, tables are made here, the same every time, and the first strategy that is
named ("auto" unless told otherwise) is compared with the best of the others. Noise comes from the real source, so no
two runs agree exactly. Seconds are medians over the runs; fitting is the first answer, to one conjunction on the most
attributes.
"""
