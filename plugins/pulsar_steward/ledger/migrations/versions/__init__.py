"""One file a version, each after the one that it names."""
