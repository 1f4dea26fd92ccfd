"""The ledger: every plan, decision, call, before and after value. Rows are only added; only lease rows are changed."""
