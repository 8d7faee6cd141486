# Plugin manifest. Everything the host has to know before it loads the code.
from typing import Any, Dict

PLUGIN_MANIFEST: Dict[str, Any] = {
    "name": "inbox_archive",
    "display_name": "Inbox " "Archive",
    "version": "2.1.0",
    "module": "plugins.inbox_archive.plugin:InboxArchivePlugin",
    "capabilities": ["http", "identity", "auth", "kb", "log", "storage"],  # kb brings cursor
    "required_identities": [
        {"provider": "google", "mode": "domain_delegate", "scopes": ["mail.read"]},
        {"provider": "chat", "mode": "user", "scopes": [], "optional": True},
    ],
    "op_auth": {
        "ingest": {
            "provider": "google",
            "mode": "domain_delegate",
            "allowed_modes": ["user", "domain_delegate", "service_account"],
            "scopes": ["mail.read"],
            "subject_hint": "identity:google_email",
        },
        "digest": {"provider": "google", "mode": "service_account", "scopes": ["mail.read"]},
        "mark_read": {"provider": "google", "mode": "domain_delegate", "scopes": ["mail.read"]},
    },
    "default_feed_op": "ingest",
    "allowed_feed_ops": ["ingest", "digest"],
    "chat_callable_ops": ["digest"],
}
