"""What a log holds: its formats, sources, times, fields and templates."""
