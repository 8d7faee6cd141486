PLUGIN_MANIFEST = {"name": "fx_rates", "version": "1.0.0", "module": "plugins.fx_rates.plugin:FxRates", "display_name": "Exchange rates",
                   "capabilities": ["http"], "chat_callable_ops": ["convert", "table"]}
