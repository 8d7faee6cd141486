"""The Event Mill contract: what its plugins import, and the server that runs them over protocol 2."""
