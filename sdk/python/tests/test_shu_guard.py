"""Imports that a Shu plugin may not make, by every way that leads to them."""

from __future__ import annotations

import textwrap
import unittest

from shu import Shu, execute, package

DENIED = ["requests", "requests.adapters", "httpx", "urllib3", "urllib3.util", "urllib.request", "shu", "shu.core", "shu._shim"]

TRY = """
    def tried(way):
        try:
            way()
        except ImportError as exc:
            return str(exc)
        except BaseException as exc:
            return f"{type(exc).__name__}: {exc}"
        return "let through"
"""


class Guard(unittest.TestCase):
    def outcome(self, body: str, head: str = "", **files: str) -> object:
        root = package(execute(body, textwrap.dedent(TRY) + textwrap.dedent(head)), **files)
        with Shu(root) as shu:
            result = shu.run()
        self.assertEqual(result["status"], "succeeded", result)
        return result["data"]["said"]

    def test_denied_modules_by_every_way(self) -> None:
        body = """
            import importlib, builtins, runpy, sys
            said = {}
            for name in NAMES:
                top = name.partition(".")[0]
                said[name] = [
                    tried(lambda: exec(f"import {name}")),
                    tried(lambda: exec(f"from {name} import anything")),
                    tried(lambda: __import__(name)),
                    tried(lambda: builtins.__import__(name, None, None, ("x",))),
                    tried(lambda: getattr(importlib, "import_" + "module")(name)),
                    tried(lambda: importlib.__import__(name)),
                    tried(lambda: runpy.run_module(name)),
                    tried(lambda: eval(f"__import__({name!r})")),
                    name in sys.modules,
                ]
            return {"said": said}
        """
        said = self.outcome(body.replace("NAMES", repr(DENIED)))
        for name in DENIED:
            *ways, loaded = said[name]
            for n, message in enumerate(ways):
                self.assertRegex(message, rf"import of {name} is denied|import of {name.partition('.')[0]} is denied", (name, n))
            self.assertFalse(loaded, name)

    def test_the_message_says_what_to_do(self) -> None:
        said = self.outcome("return {'said': [tried(lambda: __import__('httpx')), tried(lambda: __import__('shu.db'))]}")
        self.assertIn("use host.http", said[0])
        self.assertIn("use the host object", said[1])

    def test_from_urllib_import_request_is_denied_and_parse_is_not(self) -> None:
        body = """
            import urllib, urllib.parse
            from urllib import parse
            from urllib.parse import quote
            return {"said": [tried(lambda: exec("from urllib import request")), hasattr(urllib, "request"), quote("a b")]}
        """
        message, there, quoted = self.outcome(body)
        self.assertIn("import of urllib.request is denied", message)
        self.assertEqual((there, quoted), (False, "a%20b"))

    def test_what_no_rule_names_is_imported_as_ever(self) -> None:
        body = """
            import importlib, importlib.metadata, importlib.util, sys, urllib, urllib.error, urllib.response, urllib.robotparser
            from importlib import resources
            from urllib.error import HTTPError, URLError
            from urllib import error, robotparser
            robots = robotparser.RobotFileParser()
            robots.parse(["User-agent: *", "Disallow: /private"])
            try:
                raise HTTPError("http://127.0.0.1/x", 404, "not there", {}, None)
            except URLError as exc:
                caught = exc.code
            said = [tried(lambda: importlib.import_module(name)) for name in ("urllib.error", "urllib.response", "urllib.robotparser", "importlib.resources")]
            robots.set_url("http://127.0.0.1:1/robots.txt")
            return {"said": [caught, robots.can_fetch("any", "http://a/private"), said, tried(robots.read), hasattr(sys.modules["urllib.request"], "__file__")]}
        """
        caught, fetch, said, read, real = self.outcome(body)
        self.assertEqual((caught, fetch, said, real), (404, False, ["let through"] * 4, False))
        self.assertIn("import of urllib.request is denied", read)

    def test_library_modules_that_import_it_for_themselves_work_and_lend_it_to_nobody(self) -> None:
        body = """
            import sys, urllib, xml.sax, xml.dom.minidom, http.cookiejar
            from xml.sax.saxutils import escape
            titles = [n.firstChild.data for n in xml.dom.minidom.parseString("<a><t>x</t></a>").getElementsByTagName("t")]
            class Count(xml.sax.ContentHandler):
                n = 0
                def startElement(self, name, attrs): self.n += 1
            count = Count()
            xml.sax.parseString(b"<a><b/></a>", count)
            return {"said": [escape("<"), titles, count.n,
                tried(lambda: __import__("urllib.request")),
                tried(lambda: exec("from urllib import request")),
                tried(lambda: urllib.request.urlopen),
                tried(lambda: sys.modules["urllib.request"].urlopen),
                tried(lambda: getattr(http.cookiejar.urllib.request, "Request")),
                tried(lambda: xml.sax.parse("http://127.0.0.1:1/x", count))]}
        """
        escaped, titles, count, *denied = self.outcome(body)
        self.assertEqual((escaped, titles, count), ("&lt;", ["x"], 2))
        for message in denied:
            self.assertIn("import of urllib.request is denied", message)

    def test_vendored_packages_are_the_plugins_own_code(self) -> None:
        said = self.outcome("return {'said': tried(lambda: __import__('client'))}", vendor__client="import urllib.request")
        self.assertIn("import of urllib.request is denied", said)
        said = self.outcome("return {'said': tried(lambda: __import__('requests'))}", vendor__requests____init__="x = 1")
        self.assertIn("import of requests is denied", said)

    def test_an_installed_package_may_import_it_and_lends_it_to_nobody(self) -> None:
        import os

        from shu import folder

        site = folder()
        lazy = "import urllib.request\ndef late():\n    import urllib.error\n    from urllib import request\n    return 'there'\n"
        lazy += "def fetch(): return urllib.request.urlopen\ntry:\n    import requests\nexcept ImportError:\n    requests = None\ndef hard(): import httpx\ndef host(): import shu.core\n"
        with open(os.path.join(site, "installed_lib.py"), "w") as file:
            file.write(lazy)
        body = """
            import sys
            sys.path.append(SITE)
            import installed_lib as lib
            return {"said": [lib.late(), lib.requests is None, tried(lib.fetch), tried(lib.hard), tried(lib.host), tried(lambda: lib.urllib.request.urlopen),
                tried(lambda: exec("import urllib.request")), tried(lambda: exec("from urllib import request")), hasattr(sys.modules["urllib.request"], "__file__")]}
        """
        late, none, fetch, hard, host, borrowed, own, other, real = self.outcome(body.replace("SITE", repr(site)))
        self.assertEqual((late, none, real), ("there", True, False))
        for name, message in (("urllib.request", fetch), ("httpx", hard), ("shu", host), ("urllib.request", borrowed), ("urllib.request", own), ("urllib.request", other)):
            self.assertIn(f"import of {name}", message)
            self.assertIn("is denied", message)

    def test_what_the_host_has_installed_may_do_without_a_client(self) -> None:
        lib = "import urllib.request\ntry:\n    import requests\nexcept ImportError:\n    requests = None\ndef fetch(): return urllib.request.urlopen\n"
        body = "import sys\nsys.path.append(__file__.rpartition('/')[0] + '/_environment')\nimport lib\nreturn {'said': [lib.requests is None, tried(lib.fetch), tried(lambda: __import__('requests'))]}"
        none, fetch, own = self.outcome(body, _environment__lib=lib, _environment__requests____init__="x = 1")
        self.assertIs(none, True)
        self.assertIn("import of urllib.request is denied", fetch)
        self.assertIn("import of requests is denied", own)

    def test_an_import_at_the_top_fails_the_load_with_the_rule(self) -> None:
        with Shu(package("import requests\nclass Plugin: ...")) as shu:
            error = shu.run()["error"]
            self.assertIn("import of requests is denied", error["message"])
            self.assertEqual((error["plugin_code"], error["details"]["at"]), ("plugin_execute_error", "plugin.py:1"))
            self.assertIn("import of requests is denied", shu.describe()["message"])

    def test_a_plugin_that_expects_none_falls_back(self) -> None:
        head = "try:\n    import requests\nexcept ImportError:\n    requests = None"
        self.assertIs(self.outcome("return {'said': requests is None}", head), True)

    def test_modules_with_names_alike_are_nobodys_business(self) -> None:
        self.assertEqual(self.outcome("import shutil, requestsx\nreturn {'said': requestsx.X}", vendor__requestsx="X = 5"), 5)


if __name__ == "__main__":
    unittest.main()
