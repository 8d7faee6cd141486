PLUGIN_MANIFEST = {"name": "sbom_inspector", "version": "0.9.0", "module": "plugins.sbom_inspector.plugin:SbomInspector",
                   "display_name": "SBOM inspector", "capabilities": ["http", "cache"], "chat_callable_ops": ["licences", "diff", "advisories"]}
