PLUGIN_MANIFEST = {"name": "class_shapes", "version": "0.1.0", "module": "plugins.class_shapes.plugin:Shapes", "capabilities": []}
