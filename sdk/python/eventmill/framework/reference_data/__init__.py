"""Reference data that tools share."""
