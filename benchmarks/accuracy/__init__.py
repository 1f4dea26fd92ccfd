"""Accuracy of the checks: every labelled fault is made, looked at and judged; `make accuracy` does it."""
