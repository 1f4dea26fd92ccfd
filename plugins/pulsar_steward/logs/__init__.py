"""Logs and thread dumps of brokers, bookies and ZooKeeper, read for what operators search them for."""
