"""``steward doctor``: what has to hold here before Steward can look at a cluster, and before it can change one."""
