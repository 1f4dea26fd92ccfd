"""What checks of several groups share."""
