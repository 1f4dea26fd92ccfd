"""Texts about findings, plans and outcomes, for approvals, reports and pages. Reads nothing and changes nothing."""
