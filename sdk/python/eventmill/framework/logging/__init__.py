"""Logging of tools."""
