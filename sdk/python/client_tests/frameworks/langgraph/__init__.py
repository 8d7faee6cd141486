"""A stand-in for langgraph 1.2: what the adapter uses of its published interface, and a graph of one node of tools."""
