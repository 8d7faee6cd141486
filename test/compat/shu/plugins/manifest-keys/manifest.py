# What a plugin tells of itself; read, never run.
PLUGIN_MANIFEST = {
    "name": "all_keys",
    "version": "1.4.0",
    "module": "plugins.manifest_keys.plugin:AllKeys",
    "display_name": "All " "keys",
    "capabilities": ["log", "utils", "storage", "http", "auth"],
    "default_feed_op": "ingest",
    "allowed_feed_ops": ["ingest"],
    "chat_callable_ops": ["list"],
    "required_identities": [{"provider": "google", "mode": "user", "scopes": ["mail.read"], "optional": True}],
    "op_auth": {
        "list": {"provider": "google", "mode": "user", "allowed_modes": ["user", "domain_delegate"], "scopes": ["mail.read"],
                 "subject_hint": "identity:google_email", "optional": True},
        "ingest": {"secrets": {}},
    },
}
