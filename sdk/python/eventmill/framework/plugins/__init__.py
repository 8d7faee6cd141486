"""The contract between tools and the framework."""
