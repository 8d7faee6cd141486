"""A stand-in for langchain-core 1.8: what the adapter uses of its published interface."""
