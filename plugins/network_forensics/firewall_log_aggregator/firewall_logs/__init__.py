"""Firewall logs of many makes as rows of one kind, and what the rows add up to."""
