"""The ledger: every plan, decision, call, before and after. Rows are added and never changed, the lease apart."""
