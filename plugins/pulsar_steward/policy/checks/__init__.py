"""Thresholds of the checks, a group of checks a file; each section is named like its check."""
