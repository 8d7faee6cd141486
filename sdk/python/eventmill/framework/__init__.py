"""The modules that Event Mill tools import. They work without a host as well: in a tool's own tests."""
