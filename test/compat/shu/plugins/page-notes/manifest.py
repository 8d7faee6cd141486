PLUGIN_MANIFEST = {
    "name": "page_notes", "version": "1.0.0", "module": "plugins.page_notes.plugin:PageNotes",
    "capabilities": ["http", "kb"], "chat_callable_ops": ["analyze", "fetch"],
    "op_auth": {"analyze": {}, "fetch": {}},
}
