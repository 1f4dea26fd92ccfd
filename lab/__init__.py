"""A real Apache Pulsar cluster on loopback, to observe, break and repair: ZooKeeper, one bookie, brokers.

Nothing here imports the library: the lab is the independent witness of what the library claims to have done.
"""
