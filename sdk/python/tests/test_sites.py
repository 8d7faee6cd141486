"""Where installed packages are found without the module site."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
import tempfile
import unittest
import venv

from peer import SDK

ASK = "import sys; sys.path.insert(0, sys.argv[1]); from mortise._sites import directories; print(*directories(), sep='\\n')"


def ask(python: str) -> list[str]:
    """Return what the SDK says in an interpreter without site."""
    command = [python, "-I", "-S", "-B", "-c", ASK, SDK]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]


def site(python: str) -> list[str]:
    """Return what the interpreter's own site adds to the path."""
    show = "import site, sys; print(*[path for path in sys.path if path in site.getsitepackages()], sep='\\n')"
    command = [python, "-I", "-B", "-c", show]
    return [path for path in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n") if path]


@unittest.skipIf(os.name == "nt", "the paths are those of POSIX")
class Sites(unittest.TestCase):
    def test_as_site_has_them(self) -> None:
        for python in (sys.executable, "/usr/bin/python3"):
            if os.path.exists(python):
                with self.subTest(python):
                    self.assertEqual(ask(python), site(python))

    def test_virtual_environments(self) -> None:
        for shared in (False, True):
            with self.subTest(shared=shared), tempfile.TemporaryDirectory() as folder:
                venv.create(folder, system_site_packages=shared, symlinks=True)
                python = os.path.join(folder, "bin", "python")
                self.assertEqual(ask(python), site(python))
                self.assertTrue(ask(python)[0].startswith(folder))

    def test_the_path_of_a_plugin(self) -> None:
        boot = os.path.join(SDK, "mortise", "_boot.py")
        with tempfile.TemporaryDirectory() as folder:
            entry = os.path.join(folder, "plugin.py")
            with open(entry, "w", encoding="utf-8") as file:
                file.write("import sys; print(*sys.path, 'site' in sys.modules, sep='\\n')")
            for options in (["-S"], []):
                command = [sys.executable, "-I", "-B", *options, boot, entry]
                lines = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL).stderr.split("\n")
                own, sdk, path = lines[0], lines[1], lines[2 : lines.index(str(not options))]
                self.assertEqual((own, sdk), (folder, SDK))
                self.assertEqual([p for p in path if "-packages" in p], site(sys.executable))
                self.assertEqual(len(path), len(set(path)))

    def test_an_installed_package_is_not_compiled_again(self) -> None:
        """Bytecode beside a module counts if it was installed, and as ever only while it is as old as its source."""
        with tempfile.TemporaryDirectory() as folder:
            installed, own, prefix = (os.path.join(folder, name) for name in ("installed", "own", "prefix"))
            for root, name in ((installed, "package/__init__"), (installed, "package/sub"), (installed, "stale"), (own, "plugin_part")):
                path = os.path.join(root, name + ".py")
                os.makedirs(os.path.dirname(path), exist_ok=True)
                for text in ("said = 'bytecode'", "said = 'a source'"):  # of the same length
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(text)
                    os.utime(path, (1e9, 1e9))
                    if "bytecode" in text:
                        py_compile.compile(path, doraise=True)
            os.utime(os.path.join(installed, "stale.py"), (2e9, 2e9))
            show = (
                "import sys; sys.path.insert(0, sys.argv[1]); from mortise._sites import compiled\n"
                "sys.path[1:1] = sys.argv[2:]; sys.path_hooks.insert(0, compiled(sys.argv[2:3]))\n"
                "import package.sub, stale, plugin_part, pkgutil\n"
                "print(package.said, package.sub.said, stale.said, plugin_part.said, pkgutil.get_data('package', 'sub.py').decode(), sep=';')"
            )
            command = [sys.executable, "-I", "-S", "-B", "-X", "pycache_prefix=" + prefix, "-c", show, SDK, installed, own]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
            self.assertEqual(said, "bytecode;bytecode;a source;a source;said = 'a source'")


if __name__ == "__main__":
    unittest.main()
