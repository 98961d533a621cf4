"""How honest the intervals are: kinds of data x strategies x estimators x epsilons x questions.

For each combination several releases are made of one table, and every question is asked of each of them; so are models
that kernel PCA and maximum entropy learned from a history of ranges or of tables of pairs. Printed is what
falls below 93%, what a single release can do at worst, how far totals are off, and what is wastefully wide.

Run: python -m benchmarks.honesty [--quick] [--kind NAME] [--strategy NAME] [--epsilon E] [--releases N] [--out DIR]
"""
