"""The parts of context_enriched_analyzer: what is known beforehand, the rules, and what a log says of both."""
