"""Carries out approved changes, and nothing else. Only this package may change a cluster by the admin API."""
