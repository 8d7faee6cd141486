PLUGIN_MANIFEST = {
    "name": "crm_contacts", "version": "4.0.0", "display_name": "CRM contacts",
    "entrypoints": {"crm_contacts": "plugins.crm_sync.plugin:CrmContacts"},
    "module": "plugins.crm_sync.plugin:CrmContacts",
    "capabilities": ["http", "kb", "cursor", "secrets"],
    "secrets": ["crm_key"],
    "default_feed_op": "delta", "allowed_feed_ops": ["delta", "full"], "chat_callable_ops": ["export_vcard"],
    "op_auth": {"delta": {"secrets": {"crm_key": {"allowed_scope": "system_or_user"}}}, "full": {"secrets": {"crm_key": {}}}},
}
