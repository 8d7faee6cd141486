READ = "https://graph.microsoft.com/Mail.Read"
SEND = "https://graph.microsoft.com/Mail.Send"
PLUGIN_MANIFEST = {
    "name": "outlook_replies",
    "version": "0.4.0",
    "module": "plugins.outlook_replies.plugin:Plugin",
    "capabilities": ["http", "auth", "storage"],
    "required_identities": [{"provider": "microsoft", "mode": "user", "scopes": [READ], "optional": False}],
    "op_auth": {"unread": {"provider": "microsoft", "mode": "user", "scopes": [READ]},
                "draft": {"provider": "microsoft", "mode": "user", "scopes": [READ, SEND]}},
    "chat_callable_ops": ["unread", "draft"],
}
