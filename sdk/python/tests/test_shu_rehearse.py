"""The rehearsal of `mortise check`: what a plugin would do wrong on this host, by rule, file and line."""

from __future__ import annotations

import unittest

from shu import Shu, package

SCHEMA = '''
    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": ["run"]}, "n": {"type": "integer"}}, "required": ["op"]}
'''


def source(body: str, head: str = "", schema: str = SCHEMA, execute: str = "async def execute(self, params, context, host):") -> str:
    lines = "\n".join("        " + line for line in body.strip("\n").splitlines())
    return f"{head}class Plugin:\n    {execute}\n{lines}\n{schema}"


END = "\nreturn {'status': 'success', 'data': {}}"

# Each breaks one fact: the rule, the line, a part of the message, and the plugin.
BROKEN: dict[str, tuple[str, int, str, str]] = {
    "an undeclared capability": ("capability", 3, "'ocr' not declared", source("await host.ocr.extract_text(file_bytes=b'')" + END)),
    "an undeclared capability that no run gets to": ("capability", 4, "'ocr'", source("if params.get('never') == 'so':\n    host.ocr" + END)),
    "an attribute that no host has": ("host-attribute", 3, "'settings'", source("x = host.settings.DEBUG" + END)),
    "a service of the contract that is not declared": ("host-attribute", 3, "'scheduler'", source("host.scheduler" + END)),
    "a method that a service does not have": ("host-method", 3, "host.kb has no ingest_note", source("await host.kb.ingest_note('kb')" + END)),
    "setting something on the host": ("host-method", 3, "cannot be changed", source("host.http = None" + END)),
    "a search by a query": ("arguments", 3, "field", source("await host.kb.search_chunks(query='lamp', limit=3)" + END)),
    "a search without an operator": ("arguments", 3, "operator", source("await host.kb.search_documents('title')" + END)),
    "a search by a field that there is not": ("kb-search", 3, "invalid_field 'keywords'", source("await host.kb.search_chunks('keywords', 'contains', ['a'])" + END)),
    "a search with an operator of another field": ("kb-search", 3, "invalid_operator 'has_any'", source("await host.kb.search_chunks('content', 'has_any', ['a'])" + END)),
    "a namespace by position": ("arguments", 3, "put", source("await host.storage.put('k', 1, 'ns')" + END)),
    "an object that is too large": ("arguments", 3, "storage object too large", source("await host.storage.put('k', 'x' * 70000)" + END)),
    "max_errors of nothing": ("arguments", 3, "max_errors", source("await host.utils.map_safe([1], str, max_errors=0)" + END)),
    "an option that requests do not have": ("arguments", 3, "verify", source("await host.http.fetch('GET', 'https://x.example', verify=False)" + END)),
    "what is awaited and cannot be": ("await", 3, "await", source("await host.identity.user_email" + END)),
    "what is not awaited": ("await", 3, "fetch", source("host.http.fetch('GET', 'https://x.example')" + END)),
    "what is used before it is awaited": ("await", 3, "await it", source("if params.get('n') == 7: return host.secrets.get('k').strip()" + END)),
    "a coroutine that nothing awaits": ("await", 3, "never awaited", source("work = self.later()" + END, schema=SCHEMA + "\n    async def later(self): ...\n")),
    "a name that the SDK does not have": ("sdk", 3, "Retry", source("from shu_plugin_sdk import Retry" + END)),
    "a retry that is configured otherwise": ("arguments", 4, "max_attempts", source("RetryConfig(max_attempts=3)" + END, head="from shu_plugin_sdk import RetryConfig\n")),
    "a result with members that there are not": ("arguments", 4, "warnings", source("return PluginResult(status='success', warnings=[])", head="from shu_plugin_sdk import PluginResult\n")),
    "an import that is guarded": ("import", 3, "requests", source("__import__('req' + 'uests')" + END)),
    "execute that takes too little": ("arguments", 2, "execute", source("return {}", execute="async def execute(self, params, context):")),
    "a result that is none": ("result", 2, "type int", source("return 7")),
    "a result that is not JSON": ("result", 2, "not JSON", source("return {'status': 'success', 'data': {'x': object()}}")),
    "a schema that raises, and there is no other": ("schema", 4, "no parameter is checked", source("return {}", schema="    def get_schema_for_op(self, op): return {}[op]\n")),
    "a schema that raises for what no other lists": ("schema", 6, "no call of it passes", source("return {}", schema=SCHEMA + "    def get_schema_for_op(self, op): return {}[op]\n").replace("\n\n", "\n")),
    "an operation that exits": ("exit", 3, "run: SystemExit: 2", source("raise SystemExit(2)")),
    "one that is no coroutine and exits": ("exit", 4, "run: SystemExit: gone", source("import sys\nsys.exit('gone')", execute="def execute(self, params, context, host):")),
    "a name that is nowhere": ("name", 3, "tokn", source("return {'status': 'success', 'data': tokn}")),
}
CAPABILITIES = ["http", "kb", "secrets", "storage", "identity", "auth", "cache"]


def rehearsed(text: str, about: dict[str, object] | None = None, **files: str) -> list[dict[str, object]]:
    with Shu(package(text, **files), CAPABILITIES, **(about or {})) as shu:
        shu._id += 1
        shu.send({"jsonrpc": "2.0", "id": shu._id, "method": "describe", "params": {"rehearse": True}})
        frame = shu.finish(shu._id, 30)
        assert shu.requests == [], "a rehearsal asks the host for nothing"
        return frame["result"]["findings"]


class Rehearsal(unittest.TestCase):
    def test_each_fact_that_is_broken_is_found_with_its_rule_file_and_line(self) -> None:
        for name, (rule, line, part, text) in BROKEN.items():
            with self.subTest(name):
                found = rehearsed(text, {"operations": ["odd"]} if "no other" in name else None)
                fits = [one for one in found if (one["rule"], one["file"], one["line"]) == (rule, "plugin.py", line) and part in str(one["message"])]
                self.assertTrue(fits, f"{found}\n{text}")

    def test_a_plugin_that_is_right_has_no_finding(self) -> None:
        body = """
            who = host.identity.get_current_user_identity()
            mail = await host.identity.get_primary_email('google')
            token, target = await host.auth.resolve_token_and_target('google', scopes=['a'])
            limit = getattr(host, 'settings', None)
            if hasattr(host, 'rate'):
                await host.rate.limit('a', 1)
            try:
                host.ocr
            except Exception:
                pass
            answer = await host.http.fetch('GET', 'https://x.example', params={'a': 1})
            work = [host.kb.ingest_text('kb', title='t', content='c', source_id=str(n)) for n in range(2)]
            await asyncio.gather(*work)
            chunks = await host.kb.search_chunks('topics', 'has_any', ['a'], page=2)
            await host.utils.map_safe([1], str, max_errors=1)
            await host.log.info('done')
            return PluginResult.ok({'n': len(chunks['results'])})
        """
        import textwrap

        self.assertEqual(rehearsed(source(textwrap.dedent(body), "import asyncio\nfrom shu_plugin_sdk import PluginResult\n")), [])

    def test_a_schema_that_raises_and_has_another_in_its_place_is_no_finding(self) -> None:
        for raised in ("KeyError(op)", "SystemExit(2)"):
            text = source("return {'status': 'success', 'data': params['op']}", schema=SCHEMA + f"    def get_schema_for_op(self, op): raise {raised}\n")
            self.assertEqual(rehearsed(text), [])

    def test_a_schema_of_the_plugin_that_raises_is_a_warning(self) -> None:
        for raised in ("KeyError('x')", "SystemExit(2)"):
            text = source("return {'status': 'success', 'data': {}}", schema=f"    def get_schema(self): raise {raised}\n    async def get_output_schema(self): raise {raised}\n")
            found = rehearsed(text)
            self.assertEqual([(one["rule"], one["line"], one["warn"]) for one in found], [("schema", 4, True), ("schema", 5, True)])
            self.assertIn("get_schema() raises", str(found[0]["message"]))

    def test_a_class_that_is_called_otherwise_than_its_manifest_is_a_warning(self) -> None:
        text = "class Plugin:\n    name = 'other'\n    version: str = '9'\n" + source("return {}").partition("class Plugin:\n")[2]
        found = rehearsed(text)
        self.assertEqual([(one["rule"], one["file"], one["line"], one["warn"]) for one in found], [("class-name", "plugin.py", 2, True), ("class-version", "plugin.py", 3, True)])
        self.assertIn("says name 'other', and the manifest 'notes'", str(found[0]["message"]))
        same = "class Plugin:\n    name, version = 'notes', '1.2'\n" + source("return {}").partition("class Plugin:\n")[2]
        self.assertEqual(rehearsed(same, {"version": "1.2.0", "version_text": "1.2"}), [])
        late = "class Plugin:\n    def __init__(self): self.name = 'late'\n" + source("return {}").partition("class Plugin:\n")[2]
        self.assertEqual([one["line"] for one in rehearsed(late)], [2])

    def test_modules_beside_the_entry_are_read_and_vendor_and_tests_are_not(self) -> None:
        bad = "async def go(host):\n    return host.nothing_here\n"
        found = rehearsed(source("return {}"), lib__more=bad, vendor__dep=bad, tests__test_it=bad)
        self.assertEqual([(one["rule"], one["file"], one["line"]) for one in found], [("host-attribute", "lib/more.py", 2)])


if __name__ == "__main__":
    unittest.main()
