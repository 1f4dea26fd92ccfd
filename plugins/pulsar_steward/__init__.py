"""Pulsar Steward: finds what is wrong with an Apache Pulsar cluster, asks a person, repairs just what was approved.

Other packages may rely on `__version__`, on the command `steward`, and on the formats that `docs/upgrading.md` names.
No module of the library is promised to stay as it is.
"""

from pulsar_steward.outside_text import show_logs

__version__ = "0.2.0"

__all__ = ["__version__"]

show_logs()  # here, as every module of the library and every Spark job passes by
