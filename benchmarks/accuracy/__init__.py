"""How well the checks find: every labelled fault is made, looked at and judged; `make accuracy` does it."""
