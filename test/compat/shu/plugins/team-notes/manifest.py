PLUGIN_MANIFEST = {
    "name": "team_notes",
    "version": "1.0.0",
    "module": "plugins.team_notes.plugin:TeamNotes",
    "capabilities": ["http", "kb"],
    "default_feed_op": "ingest",
    "allowed_feed_ops": ["ingest"],
}
