"""Findings, plans and outcomes in words, for approvals, reports and pages. Reads nothing and changes nothing."""
