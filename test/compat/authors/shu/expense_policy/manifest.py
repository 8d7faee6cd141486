PLUGIN_MANIFEST = {"name": "expense_policy", "version": "1.0.0", "module": "plugins.expense_policy.plugin:Plugin", "capabilities": ["storage", "cache"],
                   "display_name": "Expense policy", "chat_callable_ops": ["check", "explain"]}
