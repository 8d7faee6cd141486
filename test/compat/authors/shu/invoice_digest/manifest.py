PLUGIN_MANIFEST = dict(
    name="invoice_digest", version="2.3.1", module="plugins.invoice_digest.plugin:InvoiceDigest",
    display_name="Invoice digest", capabilities=["kb"],
    allowed_feed_ops=["digest"], default_feed_op="digest", chat_callable_ops=["digest", "totals"],
)
