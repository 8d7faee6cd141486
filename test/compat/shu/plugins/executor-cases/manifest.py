PLUGIN_MANIFEST = {"name": "executor_cases", "version": "1.0.0", "module": "plugins.executor_cases.plugin:Plugin", "capabilities": ["log"]}
