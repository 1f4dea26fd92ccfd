"""Placement of namespaces over the members of a logical cluster: several Pulsar clusters that serve as one."""
