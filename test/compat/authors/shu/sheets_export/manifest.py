SHEETS = "https://www.googleapis.com/auth/spreadsheets.readonly"
PLUGIN_MANIFEST = {
    "name": "sheets_export", "version": "1.2.0", "module": "plugins.sheets_export.plugin:SheetsExport",
    "display_name": "Spreadsheet export",
    "capabilities": ["http", "auth", "identity", "kb", "storage"],
    "required_identities": [{"provider": "google", "mode": "user", "scopes": [SHEETS]}],
    "op_auth": {
        "export": {"provider": "google", "mode": "domain_delegate", "allowed_modes": ["domain_delegate", "user"], "scopes": [SHEETS], "subject_hint": "identity:google_email"},
        "pivot": {"provider": "google", "mode": "user", "scopes": [SHEETS]},
    },
    "allowed_feed_ops": ["export"], "default_feed_op": "export", "chat_callable_ops": ["pivot", "offline_pivot"],
}
