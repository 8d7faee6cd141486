PLUGIN_MANIFEST = {
    "name": "ticket_desk",
    "version": "1.1.0",
    "module": "plugins.ticket_desk.plugin:TicketDesk",
    "display_name": "Service desk",
    "capabilities": ["http", "secrets", "cache"],
    "chat_callable_ops": ["search", "show"],
    "op_auth": {
        "search": {"secrets": {"desk_key": {"allowed_scope": "system_or_user"}}},
        "show": {"secrets": {"desk_key": {"allowed_scope": "system_or_user"}}},
    },
}
