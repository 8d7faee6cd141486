PLUGIN_MANIFEST = {
    "name": "scan_extract", "version": "0.2.0", "display_name": "Scan text extraction",
    "module": "plugins.scan_extract.plugin:ScanExtract",
    "capabilities": ["ocr"],
    "chat_callable_ops": ["extract"],
}
