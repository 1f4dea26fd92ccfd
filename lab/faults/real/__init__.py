"""Trouble on real brokers, made with clients and the admin API: a file for each subject, a namespace for each fault."""
