PLUGIN_MANIFEST = {
    "name": "tickets",
    "version": "2.1.0",
    "module": "plugins.ticket_tracker.plugin:TicketPlugin",
    "display_name": "Ticket tracker",
    "capabilities": ["http", "cache"],
    "chat_callable_ops": ["search"],
    "op_auth": {"search": {}},
}
