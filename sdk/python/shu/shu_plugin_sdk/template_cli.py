"""A plugin to begin with, as a template for cookiecutter.

    python3 -m shu_plugin_sdk.template_cli DIRECTORY
"""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "{{cookiecutter.plugin_name}}"

FILES = {
    "cookiecutter.json": """{
  "plugin_name": "my_plugin",
  "display_name": "My plugin",
  "description": "What it does.",
  "class_name": "MyPlugin"
}
""",
    NAME + "/__init__.py": "",
    NAME + "/manifest.py": """PLUGIN_MANIFEST = {
    "name": "{{cookiecutter.plugin_name}}",
    "display_name": "{{cookiecutter.display_name}}",
    "version": "0.1.0",
    "module": "plugins.{{cookiecutter.plugin_name}}.plugin:{{cookiecutter.class_name}}",
    "capabilities": ["log"],
    "chat_callable_ops": ["greet"],
}
""",
    NAME + "/plugin.py": '''"""{{cookiecutter.description}}"""

from shu_plugin_sdk import PluginResult


class {{cookiecutter.class_name}}:
    name = "{{cookiecutter.plugin_name}}"
    version = "0.1.0"

    def get_schema(self):
        return {
            "type": "object",
            "title": "{{cookiecutter.display_name}}",
            "description": "{{cookiecutter.description}}",
            "properties": {"op": {"type": "string", "enum": ["greet"]}, "who": {"type": "string"}},
            "required": ["op", "who"],
            "additionalProperties": False,
        }

    def get_schema_for_op(self, op):
        return self.get_schema() if op == "greet" else None

    def get_output_schema(self):
        return {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

    async def execute(self, params, context, host):
        await host.log.info("greeting")
        return PluginResult.ok({"text": f"Hello, {params['who']}"})
''',
    NAME + "/tests/__init__.py": "",
    NAME + "/tests/test_plugin.py": """import asyncio

from shu_plugin_sdk import FakeHostBuilder, assert_plugin_contract

from ..manifest import PLUGIN_MANIFEST
from ..plugin import {{cookiecutter.class_name}}


def test_it_keeps_the_contract():
    assert_plugin_contract({{cookiecutter.class_name}}, PLUGIN_MANIFEST)


def test_it_greets():
    host = FakeHostBuilder().build()
    result = asyncio.run({{cookiecutter.class_name}}().execute({"op": "greet", "who": "Ada"}, None, host))
    assert result.data == {"text": "Hello, Ada"}
""",
}


def copy_cookiecutter_template(destination: str | Path, *, overwrite: bool = False) -> Path:
    """Write the template into a directory, which is made; raises FileExistsError where a file is there already."""
    root = Path(destination)
    for name in FILES:
        if not overwrite and (root / name).exists():
            raise FileExistsError(f"{root / name} is there already")
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def main(argv: list[str] | None = None) -> int:
    """Write the template where the command line says."""
    parser = argparse.ArgumentParser(prog="shu_plugin_sdk.template_cli", description="Write a cookiecutter template of a plugin.")
    parser.add_argument("destination")
    parser.add_argument("--overwrite", action="store_true")
    args = parser.parse_args(argv)
    print(copy_cookiecutter_template(args.destination, overwrite=args.overwrite))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
