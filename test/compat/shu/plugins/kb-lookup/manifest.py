PLUGIN_MANIFEST = {
    "name": "kb_lookup",
    "version": "1.0",
    "module": "plugins.kb_search.plugin:KbLookup",
    "capabilities": ["kb"],
}
