"""The experiments of ISPE (TR-2011-005, section 5) and the bars of adaptive releases, on tables that are about nobody.

Run: python -m benchmarks.papers.ispe [--quick] [--only errors] [--epsilon 0.2] [--table FILE] [--data DIR] [--out DIR]

errors    the default (blocks, shrunken) beside the identity and beside least squares on the same blocks
coverage  95% intervals on blocks, grown regions and kd boxes: cells, the regions themselves, small and large ranges
speed     256 x 256 x 16 cells end to end beside numpy's Laplace noise, and range queries a second
figures   the paper's figures 7 to 23: budget split, smoothing passes, threshold, method, query size, two levels
rivals    the default beside kd boxes, grown regions, trees (consistency), wavelets and the staged tree
arrays    the default beside "auto" on the DPBench arrays of --data, summed to 64 x 64

Four tables: smooth (two bumps), random (uniform counts), age x hours (rounded hours, a spike at 40) and age x education
(skewed categories). Errors are mean absolute errors over the same queries for every arm, with standard errors over
releases. Noise comes from the real source, so no two runs agree exactly; tables and queries are the same every time.
"""
