PLUGIN_MANIFEST = {
    "name": "receipt_box", "version": "1.0.0", "display_name": "Receipt box",
    "module": "plugins.receipts.plugin:ReceiptBox",
    "capabilities": ["kb", "ocr", "http", "storage"],
    "default_feed_op": "collect", "allowed_feed_ops": ["collect", "summary"],
}
