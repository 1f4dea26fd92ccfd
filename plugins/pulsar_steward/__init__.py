"""Pulsar Steward: finds what is wrong with an Apache Pulsar cluster, asks a person, repairs just what was approved."""

__version__ = "0.1.0"
