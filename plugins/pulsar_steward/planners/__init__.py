"""Plain functions from what was seen, what was found and what the policy allows to the steps that are proposed."""
