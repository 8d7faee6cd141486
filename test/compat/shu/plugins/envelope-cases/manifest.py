PLUGIN_MANIFEST = {
    "name": "envelope_cases",
    "version": "1.0.0",
    "module": "plugins.envelope_cases.plugin:Cases",
    "capabilities": ["http"],
    "op_auth": {
        "keyed": {"secrets": {"api_key": {"allowed_scope": "user"}, "shared_key": {"allowed_scope": "system"}}},
        "account": {"provider": "google", "mode": "user", "scopes": ["mail.read"]},
    },
}
