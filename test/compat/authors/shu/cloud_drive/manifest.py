_SCOPES = ["https://www.googleapis.com/auth/drive.readonly"]

PLUGIN_MANIFEST = {
    "name": "cloud_drive",
    "version": "3.1",
    "module": "plugins.cloud_drive.plugin:CloudDrivePlugin",
    "display_name": "Cloud Drive documents",
    "capabilities": ["http", "auth", "identity", "kb", "cursor"],
    "required_identities": [{"provider": "google", "mode": "user", "scopes": _SCOPES}],
    "op_auth": {
        "ingest": {"provider": "google", "mode": "user", "allowed_modes": ["user", "domain_delegate"], "scopes": _SCOPES,
                   "subject_hint": "identity:google_email"},
        "list": {"provider": "google", "mode": "user", "scopes": _SCOPES},
    },
    "default_feed_op": "ingest",
    "allowed_feed_ops": ["ingest"],
}
