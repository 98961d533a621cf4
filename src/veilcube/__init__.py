"""Differentially private releases that answer count queries with intervals.

>>> import veilcube as vc
>>> schema = vc.Schema([vc.Ordinal("age", 17, 90), vc.Nominal("sex", ["Female", "Male"])])
>>> vc.plan(schema, epsilon=0.5, strategy="identity").expected_error < 30
True
"""

from veilcube.starting import end_quietly_when_interrupted

end_quietly_when_interrupted()  # before anything else is loaded

import lazy_loader  # noqa: E402

import veilcube.errors  # noqa: E402, F401 - light, and reached as veilcube.errors without being named in an import

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
