"""Pulsar Steward: finds what is wrong with an Apache Pulsar cluster, asks a person, repairs just what was approved."""

from pulsar_steward.outside_text import show_logs

__version__ = "0.1.0"

show_logs()  # here, as every module of the library and every Spark job passes by
