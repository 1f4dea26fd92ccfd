"""Logs and thread dumps of brokers, bookies and ZooKeeper, searched for known signs of trouble."""
