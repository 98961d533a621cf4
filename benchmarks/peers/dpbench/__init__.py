"""Accuracy on count arrays of the DPBench study, beside the best published algorithm for each array.

Run: python -m benchmarks.peers.dpbench --data DIR [--adult FILE.npy] [--trials 10] [--epsilon 0.1 --epsilon 1]
[--only 1d|64|256|4d] [--arm NAME] [--out DIR]

DIR holds the arrays as 1D/*.npy (4096 cells) and 2D/*.npy (256 x 256 cells). They are not part of this repository, and
any further arrays of these shapes in DIR are measured as well. Noise comes from the real source, so no two runs agree
exactly; only the queries and the Adult-like table are the same every time.
"""
