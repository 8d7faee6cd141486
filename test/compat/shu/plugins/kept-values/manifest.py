PLUGIN_MANIFEST = {
    "name": "kept_values",
    "version": "1.0.0",
    "module": "plugins.kept_values.plugin:Plugin",
    "capabilities": ["storage", "cursor", "cache", "identity", "rate_limit", "audit"],
}
