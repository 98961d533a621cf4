"""Every public callable with valid arguments, for tests that try wrong ones: found by walking, not by listing.

What is exported is walked: functions, constructors, class methods, and the public methods of a real instance of each
class that a user can come to hold. ``VALID`` says what to pass where an argument has no default.
"""

import inspect
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from fractions import Fraction
from inspect import Parameter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import veilcube as vc
from veilcube.curator.sampling import discrete_gaussian, discrete_laplace
from veilcube.privacy import PrivacyUnit
from veilcube.query.linear import LinearQueries
from veilcube.schema import Hierarchy

# For study and for checks, as the design names them, though they are not in ``veilcube`` itself.
STUDY: Mapping[str, Any] = {
    "discrete_gaussian": discrete_gaussian,
    "discrete_laplace": discrete_laplace,
    "Hierarchy": Hierarchy,
    "PrivacyUnit": PrivacyUnit,
}
# Methods of exported classes by which veilcube's own rooms work together: they are given what the library itself made.
INTERNAL = {
    "Adaptive.candidates",
    "Adaptive.design",
    "Adaptive.natural_workload",
    "Adaptive.operator",
    "Adaptive.resolve",
    "Budget.allows",
    "Budget.charge",
    "Connection.close",  # these ask a service that is there: see tests/unit/service/client
    "Connection.open",
    "Connection.releases",
    "Connection.table",
    "Connection.tables",
    "Cube.digest",
    "Cube.measured_by",
    "Cube.owning",
    "Currency.cost_of",
    "DistributiveQuery.fitted",
    "DistributiveQuery.is_monotone",
    "DistributiveQuery.require_distributive",
    "DistributiveQuery.scores_of",
    "DistributiveQuery.value_of",
    "GroupedTables.candidates",
    "GroupedTables.design",
    "GroupedTables.natural_workload",
    "GroupedTables.operator",
    "Hierarchy",
    "Identity.candidates",
    "Identity.design",
    "Identity.natural_workload",
    "Identity.operator",
    "Ledger.charge",
    "Ledger.damaged",
    "Ledger.find_answers",
    "Ledger.keep",
    "Ledger.paying",
    "LinearQueries",
    "LinearQueries.sum_terms",
    "Marginals.axes",
    "Marginals.candidates",
    "Marginals.design",
    "Marginals.natural_workload",
    "Marginals.operator",
    "Marginals.resolve",
    "Comparison",
    "Plan",
    "Posterior.atoms",
    "Partition",
    "PrivacyStatement.cost",
    "PrivacyStatement.keeping",
    "ProtectedTable",
    "ProtectedTable.whole",
    "Tree.candidates",
    "Tree.design",
    "Tree.natural_workload",
    "Tree.operator",
    "Tree.resolve",
    "Wavelet.candidates",
    "Wavelet.design",
    "Wavelet.natural_workload",
    "Wavelet.operator",
    "Wavelet.options",
    "Wavelet.resolve",
    "Workload.made_by",
    "Workload.mean",
}
DAY = date(2024, 1, 1)
# It draws with a JavaScript engine, which takes more addresses than wrong arguments may: its own tests try them.
DRAWS = {"report"}
SPECIAL_METHODS = ("__getitem__", "__contains__", "__call__")


class World:
    """One small table and what can be made of it, each made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.schema = vc.Schema(
            [
                vc.Ordinal("age", 0, 3),
                vc.Ordinal("day", "2024-01-01", "2024-01-02", unit="day"),
                vc.Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Law": ["Judge"]}),
            ]
        )
        self.schema.to_toml(folder / "schema.toml")
        (folder / "book.csv").write_text("code,parent\nCare,\nNurse,Care\n")
        self.cube = vc.Cube(self.schema, np.full(self.schema.shape, 9))
        self.workload = vc.Workload(self.schema, [{"age": (0, 1)}, {"job": "Care"}])
        self.release = vc.release(self.cube, strategy="identity")
        self.release.save(folder / "a.veil")
        vc.plan(self.schema, 1, "identity").save(folder / "a.plan")
        (folder / "questions.sql").write_text("2 * age = 1\nage = 2\n")
        self.ledger = vc.Ledger(folder / "budget.db")
        self.table = vc.protect(self.cube, None, self.ledger, "people", 10**8, analyst="ann", analyst_epsilon=10**7)
        self.table.noisy_count(epsilon=1)
        self.history = vc.History(self.schema, self.workload, [70.0, 140.0], [2.0, 2.0])
        self._made: dict[str, Any] = {}

    def instance(self, name: str) -> Any:
        """Return the instance that ``INSTANCES`` describes under a name."""
        if name not in self._made:
            self._made[name] = INSTANCES[name](self)
        return self._made[name]

    def release_by(self, strategy: object) -> vc.Release:
        """Return a release of the cube by another strategy."""
        return vc.release(self.cube, strategy=strategy)


# A real instance of each class that a user can come to hold, under the name of the class or of a kind of it.
INSTANCES: Mapping[str, Callable[[World], Any]] = {
    "Adaptive": lambda w: vc.Adaptive(),
    "Answer": lambda w: w.release.count(),
    "Answers": lambda w: w.release.marginal("job"),
    "AuditFinding": lambda w: w.instance("AuditReport").findings[0],
    "AuditReport": lambda w: vc.audit(**_audited(), epsilon=1),
    "BeyondCap": lambda w: w.instance("Release of persons").beyond_cap(),
    "Budget": lambda w: w.ledger.budget("people"),
    "Charge": lambda w: w.ledger.history("people")[0],
    "Checked": lambda w: w.ledger.verify(),
    "Connection": lambda w: vc.connect("http://127.0.0.1:9", key="vc_aaaaaaaaaaaaaaaa_" + "A" * 43),
    "Cube": lambda w: w.cube,
    "Currency": lambda w: w.ledger.currency("people"),
    "DatasetAccount": lambda w: w.ledger.datasets()[0],
    "DateAnswer": lambda w: w.release.quantile("day"),
    "DateAnswers": lambda w: w.release.group("job", "median", "day"),
    "DistributiveQuery": lambda w: vc.DistributiveQuery.count(),
    "Eigenqueries": lambda w: w.instance("KernelPCAModel").eigenqueries(1),
    "Finding": lambda w: w.instance("ReleaseCheck").findings[0],
    "GroupedTables": lambda w: vc.GroupedTables(),
    "Hierarchy": lambda w: w.schema["job"].hierarchy,
    "History": lambda w: w.history,
    "Identity": lambda w: vc.Identity(),
    "KernelPCA": lambda w: vc.KernelPCA(),
    "KernelPCAModel": lambda w: vc.KernelPCA().fit(w.history, total=216),
    "Ledger": lambda w: w.ledger,
    "LedgerHistory": lambda w: w.ledger.history("people"),
    "LinearQueries": lambda w: LinearQueries.of(w.workload),
    "Marginals": lambda w: vc.Marginals(),
    "MaxEntropy": lambda w: vc.MaxEntropy(),
    "Comparison": lambda w: vc.plan(w.schema, 1, "identity").compare(w.release),
    "MaxEntropyModel": lambda w: vc.MaxEntropy().fit(w.history, total=216),
    "MeasuredRows": lambda w: vc.measure_cap(_arrow(), w.schema, "age", 1),
    "Nominal": lambda w: w.schema["job"],
    "Ordinal": lambda w: w.schema["age"],
    "Ordinal of dates": lambda w: w.schema["day"],
    "Partition": lambda w: w.table.partition("job"),
    "Plan": lambda w: vc.plan(w.schema, 1, "identity"),
    "Posterior": lambda w: vc.posterior([(3, {2: 1})]),
    "PrivacyStatement": lambda w: w.release.privacy,
    "PrivacyUnit": lambda w: w.cube.unit,
    "ProtectedTable": lambda w: w.table,
    "RankAnswer": lambda w: w.table.noisy_max("age", epsilon=1),
    "RankAnswers": lambda w: w.table.noisy_quantiles("age", [0.5], epsilon=1),
    "Refined": lambda w: vc.refine({"A": 1.0}, ["A <= 3"], covariance=[1.0]),
    "RefinedRelease": lambda w: vc.refine(w.release, ["total = 216"]),
    "RefinementPrivacy": lambda w: vc.refinement_privacy(**_privacy_study()),
    "Release": lambda w: w.release,
    "Release of grouped tables": lambda w: w.release_by(vc.GroupedTables()),
    "Release of regions": lambda w: w.release_by(vc.Adaptive()),
    "Release of persons": lambda w: vc.release(
        _arrow(), 10**6, "identity", schema=w.schema, person="age", max_rows=2, measure_cap=1
    ),
    "Release of tables": lambda w: w.release_by(vc.Marginals(k=1)),
    "Release of a tree": lambda w: w.release_by(vc.Tree(refine=False)),
    "Release of wavelets": lambda w: w.release_by(vc.Wavelet()),
    "ReleaseCheck": lambda w: w.instance("Release in steps").check(),
    "Release in steps": lambda w: vc.release(vc.Cube(vc.Schema([vc.Ordinal("age", 0, 3)]), [1, 2, 3, 4]), 1, vc.Tree()),
    "Schema": lambda w: w.schema,
    "Schema with impossible combinations": lambda w: vc.Schema(
        w.schema.attributes, impossible=[{"age": (0, 1), "job": "Judge"}]
    ),
    "Share": lambda w: w.ledger.shares("people")[0],
    "Tree": lambda w: vc.Tree(),
    "Usefulness": lambda w: vc.usefulness(cells=9, epsilon=1, error=0.1),
    "Wavelet": lambda w: vc.Wavelet(),
    "Workload": lambda w: w.workload,
}


def _audited() -> dict[str, Any]:
    return {"mechanism": lambda records: len(records) % 2, "domain": ["a"], "records": 1, "trials": 100}


def _backup(world: World) -> Path:
    path = world.folder / f"copy-{uuid.uuid4()}.db"
    world.ledger.backup(path)
    return path


def _privacy_study() -> dict[str, Any]:
    return {"constraints": ["a + b = 3"], "scale": 1, "query": {"a": [1, 0], "b": [0, 1]}}


# What to pass for arguments without a default; the others are tried beside their defaults.
VALID: Mapping[str, Callable[[World], dict[str, Any]]] = {
    "Answer": lambda w: {"value": 1.0, "low": 0.0, "high": 2.0, "confidence": 0.95, "stddev": 1.0},
    "Answers": lambda w: {
        "value": np.ones(2),
        "low": np.zeros(2),
        "high": np.full(2, 2.0),
        "stddev": np.ones(2),
        "confidence": 0.95,
    },
    "Answers.__getitem__": lambda w: {"index": 0},
    "AuditReport.save": lambda w: {"path": w.folder / "audit.html"},
    "audit": lambda w: _audited(),
    "Cube": lambda w: {"schema": w.schema, "counts": np.ones(w.schema.shape, dtype=np.int64)},
    "connect": lambda w: {"url": "http://127.0.0.1:9", "key": "vc_aaaaaaaaaaaaaaaa_" + "A" * 43},
    "DateAnswer": lambda w: {"value": DAY, "low": DAY, "high": DAY, "confidence": 0.95},
    "DistributiveQuery": lambda w: {"part": lambda n, r: int(r.sum()), "merge": lambda a, b: a + b, "sensitivity": 1},
    "DistributiveQuery.max": lambda w: {"domain": range(4)},
    "DistributiveQuery.min": lambda w: {"domain": range(4)},
    "DistributiveQuery.merge_all": lambda w: {"results": [1, 2]},
    "DistributiveQuery.sum": lambda w: {"low": 0, "high": 3},
    "DateAnswers.__getitem__": lambda w: {"index": 0},
    "Hierarchy.level": lambda w: {"number": 1},
    "Hierarchy.flat": lambda w: {"values": ["a", "b"]},
    "Hierarchy.read": lambda w: {"spec": {"g": ["a", "b"]}},
    "Hierarchy.require_leaves": lambda w: {"values": ["Nurse", "Aide", "Judge"]},
    "Hierarchy.run_of": lambda w: {"name": "Care"},
    "History": lambda w: {"schema": w.schema, "workload": w.workload, "values": [7.0, 8.0], "variances": [1.0, 1.0]},
    "History.__getitem__": lambda w: {"chosen": [0]},
    "History.merge": lambda w: {"histories": (w.history, w.history)},
    "History.of_release": lambda w: {"record": w.release.record},
    "KernelPCA.fit": lambda w: {"history": w.history, "total": 216},
    "KernelPCAModel.answer": lambda w: {"workload": w.workload},
    "KernelPCAModel.count": lambda w: {"conditions": {"age": 1}},
    "KernelPCAModel.marginal": lambda w: {"names": ("job",)},
    "KernelPCAModel.values_for": lambda w: {"workload": w.workload, "alphas": [1.0]},
    "KernelPCAModel.with_alpha": lambda w: {"alpha": 1.0},
    "Ledger": lambda w: {"url": w.folder / "other.db"},
    "Ledger.allow": lambda w: {"dataset": "people", "analyst": "bob", "epsilon": 1},
    "Ledger.backup": lambda w: {"target": w.folder / f"copy-{uuid.uuid4()}.db"},
    "Ledger.budget": lambda w: {"dataset": "people"},
    "Ledger.create": lambda w: {"dataset": "people", "epsilon": 10**8},
    "Ledger.ensure": lambda w: {"dataset": "people", "epsilon": 10**8},
    "Ledger.ensure_allowed": lambda w: {"dataset": "people", "analyst": "eve", "epsilon": 1},
    "Ledger.currency": lambda w: {"dataset": "people"},
    "Ledger.restore": lambda w: {"source": _backup(w)},
    "Ledger.shares": lambda w: {"dataset": "people"},
    "LedgerHistory.under": lambda w: {"schema": w.schema},
    "LinearQueries.__getitem__": lambda w: {"chosen": [0]},
    "LinearQueries.apply": lambda w: {"cube": np.ones(w.schema.shape)},
    "LinearQueries.concatenate": lambda w: {"several": [LinearQueries.of(w.workload)]},
    "LinearQueries.conditions": lambda w: {"schema": w.schema, "queries": [{"age": 1}]},
    "LinearQueries.count_rows": lambda w: {"cells": [[0, 0, 0], [3, 1, 2]]},
    "LinearQueries.evaluate": lambda w: {"cells": [[0, 0, 0], [3, 1, 2]]},
    "LinearQueries.everything": lambda w: {"schema": w.schema},
    "LinearQueries.fourier": lambda w: {"schema": w.schema, "names": [["age"]]},
    "LinearQueries.from_dict": lambda w: {"schema": w.schema, "data": LinearQueries.of(w.workload).to_dict()},
    "LinearQueries.function": lambda w: {"schema": w.schema, "tables": {("age",): [1, 2, 3, 4]}},
    "LinearQueries.moments": lambda w: {"schema": w.schema, "powers": [{"age": 1}]},
    "LinearQueries.of": lambda w: {"workload": w.workload},
    "LinearQueries.of_terms": lambda w: {"schema": w.schema, "queries": [[{0: np.ones(4)}]]},
    "LinearQueries.wavelet": lambda w: {"schema": w.schema, "nodes": [{"age": (0, 1, 2)}]},
    "MaxEntropy.fit": lambda w: {"history": w.history, "total": 216},
    "MaxEntropyModel.answer": lambda w: {"workload": w.workload},
    "MaxEntropyModel.count": lambda w: {"conditions": {"age": 1}},
    "MaxEntropyModel.marginal": lambda w: {"names": ("job",)},
    "MaxEntropyModel.distribution": lambda w: {"names": ["age"]},
    "MaxEntropyModel.rows": lambda w: {"n": 3},
    "MaxEntropyModel.synthesize": lambda w: {"n": 3},
    "Nominal": lambda w: {"name": "n", "values": ["a", "b"]},
    "Nominal.cells_of": lambda w: {"value": "Care"},
    "Nominal.label": lambda w: {"cell": 0},
    "Nominal.mask": lambda w: {"first": 0, "end": 1},
    "Ordinal": lambda w: {"name": "o", "low": 0, "high": 3},
    "Ordinal.after": lambda w: {"value": 1},
    "Ordinal.before": lambda w: {"value": 1},
    "Ordinal.cells_between": lambda w: {"low": 1, "high": 2},
    "Ordinal.cells_of": lambda w: {"value": 1},
    "Ordinal of dates.after": lambda w: {"value": "2024-01-01"},
    "Ordinal of dates.before": lambda w: {"value": "2024-01-01"},
    "Ordinal of dates.cells_between": lambda w: {"low": "2024-01-01", "high": "2024-01-02"},
    "Ordinal of dates.label": lambda w: {"cell": 0},
    "Ordinal of dates.cells_of": lambda w: {"value": "2024-01-01"},
    "PrivacyUnit.person": lambda w: {"column": "id", "max_rows": 2},
    "PrivacyUnit.whole_person": lambda w: {"column": "id"},
    "Release in steps.answer": lambda w: {"workload": vc.Workload(w.instance("Release in steps").schema, [{"age": 1}])},
    "Release in steps.ask": lambda w: {"statement": "SELECT COUNT(*), AVG(age) FROM t"},
    "Release in steps.contrast": lambda w: {"weighted": [(1, {"age": 1}), (-0.5, "age > 1")]},
    "Release in steps.correlation": lambda w: {"first": "age", "second": "age"},
    "Release in steps.difference": lambda w: {"first": {"age": 1}, "second": "age > 1"},
    "Release in steps.group": lambda w: {"by": ["age"]},
    "Release in steps.ratio": lambda w: {"first": {"age": 1}, "second": "age > 1"},
    "Release in steps.marginal": lambda w: {"names": ("age",)},
    "Ordinal.label": lambda w: {"cell": 0},
    "Ordinal.mask": lambda w: {"first": 0, "end": 1},
    "Partition.__getitem__": lambda w: {"value": "Nurse"},
    "Partition.noisy_count": lambda w: {"epsilon": 1},
    "Partition.noisy_mean": lambda w: {"attribute": "age", "epsilon": 1},
    "Partition.noisy_sum": lambda w: {"attribute": "age", "epsilon": 1},
    "Plan.compare": lambda w: {"release": w.release},
    "Plan.read": lambda w: {"path": w.folder / "a.plan"},
    "Plan.save": lambda w: {"path": w.folder / "b.plan"},
    "Plan.stddev": lambda w: {"workload": w.workload},
    "Posterior.cdf": lambda w: {"x": 1.0},
    "Posterior.density": lambda w: {"x": 1.0},
    "PrivacyStatement": lambda w: vars(w.release.privacy),
    "PrivacyStatement.charged": lambda w: {"to": "a ledger"},
    "PrivacyStatement.from_dict": lambda w: {"data": w.release.privacy.to_dict()},
    "PrivacyUnit.from_dict": lambda w: {"data": w.cube.unit.to_dict()},
    "PrivacyUnit.read": lambda w: {"person": "id", "max_rows": 2},
    "ProtectedTable.distributive": lambda w: {"query": vc.DistributiveQuery.count(), "attribute": "age", "epsilon": 1},
    "ProtectedTable.noisy_count": lambda w: {"epsilon": 1},
    "ProtectedTable.noisy_marginal": lambda w: {"names": ("job",), "epsilon": 1},
    "ProtectedTable.noisy_max": lambda w: {"attribute": "age", "epsilon": 1},
    "ProtectedTable.noisy_mean": lambda w: {"attribute": "age", "epsilon": 1},
    "ProtectedTable.noisy_min": lambda w: {"attribute": "age", "epsilon": 1},
    "ProtectedTable.noisy_moment": lambda w: {"powers": {"age": 1}, "epsilon": 1},
    "ProtectedTable.noisy_quantile": lambda w: {"attribute": "age", "epsilon": 1},
    "ProtectedTable.noisy_quantiles": lambda w: {"attribute": "age", "quantiles": [0.5], "epsilon": 1},
    "ProtectedTable.noisy_sum": lambda w: {"attribute": "age", "epsilon": 1},
    "ProtectedTable.partition": lambda w: {"names": ("job",), "bands": {"age": [2]}},
    "ProtectedTable.select": lambda w: {"names": ("job",)},
    "Refined.__getitem__": lambda w: {"index": "A"},
    "Release": lambda w: {"record": w.release.record},
    "Release.answer": lambda w: {"workload": w.workload},
    "Release.cdf": lambda w: {"attribute": "age"},
    "Release.ask": lambda w: {"statement": "SELECT COUNT(*), AVG(age) FROM t GROUP BY LEVEL(job, 1)"},
    "Release.check": lambda w: {},
    "Release.contrast": lambda w: {"weighted": [(1, {"age": 1}), (-0.5, "job = 'Care'")]},
    "Release.correlation": lambda w: {"first": "age", "second": "day"},
    "Release.count": lambda w: {"conditions": {"age": 1}},
    "Release.export": lambda w: {"path": w.folder / "t.csv", "by": ["age"]},
    "Release.write_card": lambda w: {"folder": w.folder / "card"},
    "Release.difference": lambda w: {"first": {"age": 1}, "second": "job = 'Care'"},
    "Release.distributive": lambda w: {"query": vc.DistributiveQuery.count(), "attribute": "age"},
    "Release.group": lambda w: {"by": ["job:Level 1"]},
    "Release.marginal": lambda w: {"names": ("job",)},
    "Release.mean": lambda w: {"attribute": "age"},
    "Release.quantile": lambda w: {"attribute": "age"},
    "Release.ratio": lambda w: {"first": {"age": 1}, "second": "job = 'Care'"},
    "Release.publish": lambda w: {"folder": w.folder / "site", "report": False},
    "Release.save": lambda w: {"path": w.folder / "b.veil"},
    "Release.share": lambda w: {"conditions": {"age": 1}},
    "Release.variance": lambda w: {"attribute": "age"},
    "Release.sum": lambda w: {"attribute": "age"},
    "Release.to_parquet": lambda w: {"path": w.folder / "cells.parquet"},
    "Schema": lambda w: {
        "attributes": list(w.schema.attributes),
        "impossible": [{"age": (0, 1), "job": ["Judge"]}, {"day": "2024-01-02", "job": "Care"}],
    },
    "Schema.__getitem__": lambda w: {"name": "age"},
    "Schema.axes": lambda w: {"names": ["age", "job"]},
    "Schema.axis": lambda w: {"name": "age"},
    "Schema.from_dict": lambda w: {"data": w.schema.to_dict()},
    "Schema.from_toml": lambda w: {"path": w.folder / "schema.toml"},
    "Schema.read": lambda w: {"source": w.schema},
    "Workload": lambda w: {"schema": w.schema, "queries": [{"age": 1}]},
    "Workload.from_file": lambda w: {"schema": w.schema, "path": w.folder / "questions.sql"},
    "Workload.from_sql": lambda w: {"schema": w.schema, "texts": ["age = 1"]},
    "Workload.marginals": lambda w: {"schema": w.schema, "k": 1},
    "Workload.prefixes": lambda w: {"schema": w.schema},
    "Workload.random_ranges": lambda w: {"schema": w.schema, "n": 3, "seed": 0},
    "Workload.ranges": lambda w: {"schema": w.schema, "low": [[0, 0, 0]], "high": [[1, 1, 1]]},
    "codebook": lambda w: {"path": w.folder / "book.csv"},
    "check_table": lambda w: {"source": _arrow(), "schema": w.schema},
    "count": lambda w: {"source": _arrow(), "schema": w.schema},
    "discrete_gaussian": lambda w: {"variance": Fraction(3, 2), "size": 4},
    "discrete_laplace": lambda w: {"scale": Fraction(3, 2), "size": 4},
    "grow_regions": lambda w: {"cells": np.zeros((3, 3)), "threshold": 1.0},
    "measure_cap": lambda w: {"source": _arrow(), "schema": w.schema, "person": "age", "epsilon": 1},
    "open": lambda w: {"path": w.folder / "a.veil"},
    "plan": lambda w: {"schema": w.schema, "strategy": "identity", "workload": w.workload},
    "posterior": lambda w: {"observations": [(3, {2: 1})]},
    "protect": lambda w: {"source": _arrow(), "schema": w.schema, "ledger": w.ledger, "dataset": "people"},
    "rank_distribution": lambda w: {"counts": [1, 2, 3], "epsilon": 1},
    "refine": lambda w: {"values": {"A": 1.0}, "constraints": ["A <= 3"], "covariance": [1.0]},
    "refinement_privacy": lambda w: _privacy_study(),
    "release": lambda w: {"source": _arrow(), "schema": w.schema, "strategy": "identity"},
    "smooth": lambda w: {"cells": np.zeros((3, 3)), "passes": 1},
    "usefulness": lambda w: {"cells": 9, "epsilon": 1, "error": 0.1},
    "walsh_hadamard": lambda w: {"vector": [1, 2, 3, 4]},
}


def _arrow() -> object:
    return pa.table({"age": [0, 1, 3], "day": ["2024-01-01"] * 3, "job": ["Nurse", "Aide", "Judge"]})


# What is made is then used, so that a setting which is wrong is refused when it is set or when it is used, by us.
USES: Mapping[str, Callable[[World, Any], object]] = {
    "Adaptive": lambda w, made: vc.release(w.cube, strategy=made),
    "Answer": lambda w, made: made.to_dict(),
    "Answers": lambda w, made: (made.to_dict(), made.to_pandas(), list(made)),
    "Cube": lambda w, made: vc.release(made, strategy="identity").count(),
    "DateAnswer": lambda w, made: made.to_dict(),
    "DistributiveQuery": lambda w, made: w.table.distributive(made, "age", epsilon=1),
    "GroupedTables": lambda w, made: vc.release(w.cube, strategy=made),
    "History": lambda w, made: vc.KernelPCA().fit(made, total=216).answer(w.workload),
    "KdTree": lambda w, made: vc.release(w.cube, strategy=made),
    "KernelPCA": lambda w, made: made.fit(w.history, total=216).answer(w.workload),
    "Ledger": lambda w, made: (made.create("x", 1), made.history("x")),
    "Marginals": lambda w, made: vc.release(w.cube, strategy=made),
    "MaxEntropy": lambda w, made: made.fit(w.history, total=216).answer(w.workload),
    "Nominal": lambda w, made: vc.Schema([made]).to_toml("made.toml"),
    "Ordinal": lambda w, made: vc.Schema([made]).to_toml("made.toml"),
    "Release": lambda w, made: made.count(),
    "Schema": lambda w, made: (made.to_toml("made.toml"), made.fingerprint(), made.impossible_boxes),
    "Tree": lambda w, made: vc.release(w.cube, strategy=made).count(),
    "Wavelet": lambda w, made: vc.release(w.cube, strategy=made).count(),
    "Workload": lambda w, made: w.release.answer(made),
    "plan": lambda w, made: (made.to_dict(), made.expected_error, vc.release(w.cube, plan=made)),
    "protect": lambda w, made: made.noisy_count(epsilon=1),
    "refine": lambda w, made: (made.to_dict(), list(made)),
    "release": lambda w, made: made.save("made.veil"),
}


def exported() -> dict[str, Any]:
    """Return what users may call by name."""
    named = {name: getattr(vc, name) for name in vc.__all__} | dict(STUDY)
    return {
        name: thing for name, thing in named.items() if not (inspect.isclass(thing) and issubclass(thing, Exception))
    }


def owners() -> list[str]:
    """Return the names under which callables are found: functions, classes, and instances."""
    return sorted({*exported(), *INSTANCES})


def public_callables(world: World, owner: str) -> dict[str, Callable[..., Any]]:
    """Return every public callable of an owner by its name; a new one turns up here by itself."""
    found: dict[str, Callable[..., Any]] = {}
    thing = exported().get(owner)
    if thing is not None:
        found[owner] = thing
    if inspect.isclass(thing):
        found |= {f"{owner}.{method}": bound for method, bound in _class_methods(thing)}
    if owner in INSTANCES:
        found |= {f"{owner}.{method}": bound for method, bound in _instance_methods(world.instance(owner))}
    return {name: function for name, function in found.items() if name not in INTERNAL}


def _class_methods(thing: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in dir(thing):
        if not name.startswith("_") and isinstance(inspect.getattr_static(thing, name), classmethod | staticmethod):
            yield name, getattr(thing, name)


def _instance_methods(instance: object) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in dir(type(instance)):
        method = inspect.getattr_static(type(instance), name)
        if name not in DRAWS and inspect.isfunction(method) and (not name.startswith("_") or name in SPECIAL_METHODS):
            yield name, getattr(instance, name)


def valid_arguments(world: World, name: str, function: Callable[..., Any]) -> dict[str, Any] | None:
    """Return arguments that work, found under the callable's name or that of its class; None if there are none."""
    recipe = VALID.get(name)
    owner, _, method = name.partition(".")
    if recipe is None and method and owner in INSTANCES:
        for parent in type(world.instance(owner)).__mro__:
            recipe = recipe or VALID.get(f"{parent.__name__}.{method}")
    if recipe is not None:
        return dict(recipe(world))
    parameters = inspect.signature(function).parameters.values()
    optional = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    needed = [one for one in parameters if one.default is Parameter.empty and one.kind not in optional]
    return None if needed else {}
