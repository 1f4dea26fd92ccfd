"""Twelve reports chosen by somebody who does not know the checks: all that are in this folder, and no others."""

from lab.faults.field.unseen import policies, servers, standstills, stored

FAULTS = (*policies.FAULTS, *standstills.FAULTS, *servers.FAULTS, *stored.FAULTS)

__all__ = ["FAULTS"]
