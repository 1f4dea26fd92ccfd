"""The policy: thresholds of the checks, and limits on changes."""
