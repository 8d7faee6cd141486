# the dict is computed on purpose
_OPS = ["validate", "measure", "simplify"]
PLUGIN_MANIFEST = {
    "name": "geojson_tools", "version": "1." + str(len(_OPS)), "display_name": "GeoJSON tools",
    "module": "plugins.geo_tools.plugin:GeoJsonTools", "capabilities": [], "chat_callable_ops": list(_OPS),
}
