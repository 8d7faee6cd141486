"""Indicators of compromise out of what people write about attacks."""
