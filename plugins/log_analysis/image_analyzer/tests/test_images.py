"""Images of all formats, whole and damaged, with and without something hidden; a model that sees and one that does not."""

from __future__ import annotations

import hashlib
import json
import os
import random
import struct
import subprocess
import sys
import time
import unittest
import zlib
from typing import Any, Dict, List

from framework.plugins.protocol import LLMResponse, ToolResult

import pictures
from support import HERE, ToolCase
from tool import ImageAnalyzer

FORMS = {"jpeg": pictures.jpeg(), "png": pictures.png(), "gif": pictures.gif(), "bmp": pictures.bmp(), "webp": pictures.webp()}


class Model:
    """A model that gives one answer about an image."""

    def __init__(self, text: str = "", error: str = "") -> None:
        self.text, self.error = text, error
        self.asked: List[Dict[str, Any]] = []

    def query_multimodal(self, **asked: Any) -> LLMResponse:
        self.asked.append(asked)
        return LLMResponse(ok=not self.error, text=self.text, error=self.error or None, model_used="v-1")


class Images(ToolCase):
    tool = ImageAnalyzer()

    def kinds(self, result: Dict[str, Any]) -> List[str]:
        """What stands out."""
        return [one["kind"] for one in result["findings"]]

    def test_every_format(self) -> None:
        for name, data in FORMS.items():
            result = self.run_on(data)
            image = result["image"]
            self.assertEqual((image["format"], image["width"], image["height"], image["end"]), (name, 3, 2, len(data)), name)
            self.assertIsNone(result["behind_the_end"])
            self.assertNotIn("damage", self.kinds(result), name)
            self.assertEqual(result["file"], {"size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "sha1": hashlib.sha1(data).hexdigest(), "md5": hashlib.md5(data).hexdigest()})
        self.assertEqual((self.run_on(FORMS["gif"])["image"]["frames"], self.run_on(FORMS["gif"])["metadata"]["texts"][0]["text"]), (2, "made by hand"))

    def test_metadata_in_every_container_and_byte_order(self) -> None:
        for order in "<>":
            block = pictures.exif(order)
            for data in (pictures.jpeg(pictures.segment(0xE1, b"Exif\0\0" + block)), pictures.png(extra=pictures.chunk(b"eXIf", block)), pictures.webp()):
                result = self.run_on(data)
                tags = result["metadata"]["tags"]
                self.assertEqual((tags["make"], tags["model"], tags["taken"], tags["exposure_seconds"]), ("Acme", "Lens 9", "2026:03:05 09:14:00", 0.004))
                self.assertEqual({k: result["metadata"]["position"][k] for k in ("latitude", "longitude")}, {"latitude": -52.51, "longitude": 52.51})
                self.assertIn("changed_after_it_was_taken", self.kinds(result))
        cropped = pictures.jpeg(pictures.segment(0xE1, b"Exif\0\0" + pictures.exif(width=4000)))
        self.assertIn("size_does_not_fit", self.kinds(self.run_on(cropped)))

    def test_what_is_hidden_behind_the_end(self) -> None:
        for data in FORMS.values():
            for hidden, what in ((b"PK\x03\x04" + os.urandom(500), "a zip archive"), (b"\0" * 9 + b"<?php system($_GET[0]);", "PHP code"), (b"\0\0\0\x18ftypmp42" + bytes(50), "an MP4 video")):
                result = self.run_on(data + hidden)
                behind = result["behind_the_end"]
                self.assertEqual((behind["offset"], behind["size"]), (len(data), len(hidden)))
                (found,) = [one for one in behind["found"] if one["what"] == what]
                self.assertEqual(found["offset"], len(data) + (9 if b"php" in hidden else 0))
                self.assertEqual((result["findings"][0]["kind"], result["findings"][0]["severity"], result["findings"][0]["offset"]), ("data_behind_the_end", "high", len(data)))
            self.assertNotIn("data_behind_the_end", self.kinds(self.run_on(data + bytes(4096))))  # a camera's padding
        far = self.run_on(FORMS["png"] + bytes((1 << 20) - len(FORMS["png"]) - 3) + b"7z\xbc\xaf\x27\x1c" + bytes(20))
        self.assertEqual(far["behind_the_end"]["found"], [{"offset": (1 << 20) - 3, "what": "a 7-Zip archive"}])  # over the edge of two blocks

    def test_what_is_damaged(self) -> None:
        data = bytearray(FORMS["png"])
        data[60] ^= 1
        self.assertIn("damage", self.kinds(self.run_on(bytes(data))))
        short = self.run_on(pictures.png(rows=b"\0\1\2\3"))
        self.assertIn("the picture has 4 bytes of data where its size needs 8", [one["why"] for one in short["findings"]])
        for name, whole in FORMS.items():
            result = self.run_on(whole[:-2] if name != "gif" else whole[:-1])
            self.assertIn("damage", self.kinds(result), name)

    def test_a_small_file_that_inflates_to_gigabytes(self) -> None:
        squeeze = zlib.compressobj(9)
        body = b"".join(squeeze.compress(bytes(1 << 20)) for _ in range(200)) + squeeze.flush()
        data = b"\x89PNG\r\n\x1a\n" + pictures.chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 6, 0, 0, 0)) + pictures.chunk(b"IDAT", body) + pictures.chunk(b"IEND", b"")
        begin = time.monotonic()
        result = self.run_on(data)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertIn("huge_picture", self.kinds(result))

    def test_all_parts_become_an_artifact(self) -> None:
        self.artifact(pictures.png(extra=pictures.chunk(b"tEXt", b"a\0b") * 60), "image", "door.png")
        result = self.tool.execute({"limit": "10"}, self.context())
        assert result.result is not None and result.output_artifacts is not None
        self.assertEqual((len(result.result["parts"]), len(self.registered[0]["lines"]), self.registered[0]["lines"][62]["name"]), (10, 63, "IEND"))

    def test_texts_and_names_that_do_not_fit(self) -> None:
        texts = pictures.chunk(b"tEXt", b"Comment\0<script>x</script>") + pictures.chunk(b"zTXt", b"Note\0\0" + zlib.compress(b"n" * 300)) + pictures.chunk(b"iTXt", b"Title\0\0\0en\0Titel\0A door")
        result = self.run_on(pictures.png(extra=texts))
        self.assertEqual([t["kind"] for t in result["metadata"]["texts"]], ["Comment", "Note", "Title"])
        self.assertEqual(result["metadata"]["texts"][2]["text"], "A door")
        self.assertEqual(self.kinds(result).count("unusual_text"), 2)
        named = self.tool.execute({"file_path": self.file(FORMS["png"], "door.jpg")}, self.context())
        assert named.result is not None
        self.assertIn("name_does_not_fit", self.kinds(named.result))
        control = self.run_on(pictures.jpeg(pictures.segment(0xFE, b"a\x1b[2Jb\x07")))
        self.assertEqual(control["metadata"]["texts"][0]["text"], "a [2Jb")

    def test_any_damage_is_an_answer(self) -> None:
        rng = random.Random(6)
        for whole in [*FORMS.values(), pictures.jpeg(pictures.segment(0xE1, b"Exif\0\0" + pictures.exif())), pictures.png(extra=pictures.chunk(b"eXIf", pictures.exif(">")))]:
            for _ in range(120):
                data = bytearray(whole)
                for _ in range(rng.randrange(1, 12)):
                    data[rng.randrange(3, len(data))] = rng.randrange(256)
                result = self.tool.execute({"file_path": self.file(bytes(data[: rng.randrange(3, len(data) + 1)]))}, self.context())
                self.assertTrue(result.ok or result.error_code == "ARTIFACT_UNREADABLE", result.message)
                json.dumps(result.result, allow_nan=False)

    def test_what_is_no_image(self) -> None:
        for content in (b"", b"a log\n", b"%PDF-1.7", b"RIFF\0\0\0\0WAVE"):
            self.refused("ARTIFACT_UNREADABLE", {"file_path": self.file(content)})
        self.refused("ARTIFACT_UNREADABLE", {"file_path": self.dir})
        self.refused("ARTIFACT_NOT_FOUND", {"file_path": "/no/such.png"})
        self.artifact(FORMS["png"], "image", "door.png")
        self.assertTrue(self.tool.execute({}, self.context()).ok)

    def test_what_a_model_sees_is_kept_apart(self) -> None:
        answer = {"description": "A door.", "text": ["EXIT", 7], "objects": ["door"], "people": 2, "notable": ["badge reader"], "answer": "Yes."}
        model = Model("Sure: " + json.dumps(answer))
        result = self.tool.execute({"file_path": self.file(FORMS["png"]), "question": "Is there a door?"}, self.context(llm=model))
        assert result.result is not None
        seen = result.result["model"]
        self.assertEqual((seen["description"], seen["text"], seen["people"], seen["answer"], seen["model_used"]), ("A door.", ["EXIT"], 2, "Yes.", "v-1"))
        self.assertEqual((model.asked[0]["image_data"], model.asked[0]["image_format"]), (FORMS["png"], "png"))
        self.assertIn("unverified", self.tool.summarize_for_llm(result))
        for bad in (Model("no JSON"), Model("[1]"), Model(error="no quota")):
            result = self.tool.execute({"file_path": self.file(FORMS["png"])}, self.context(llm=bad))
            assert result.result is not None
            self.assertIsNone(result.result["model"])
            self.assertTrue(result.result["notes"])

    def test_a_model_that_does_not_see(self) -> None:
        blind = Model(error="the connected model has no vision")
        path = self.file(FORMS["png"])
        result = self.tool.execute({"file_path": path}, self.context(llm=blind))
        self.assertTrue(result.ok)
        self.refused("LLM_CAPABILITY_GAP", {"file_path": path, "need_model": True}, self.context(llm=blind))
        self.refused("LLM_CAPABILITY_GAP", {"file_path": path, "need_model": True}, self.context(llm=object()))
        self.refused("LLM_UNAVAILABLE", {"file_path": path, "need_model": True})
        quiet = Model("{}")
        self.tool.execute({"file_path": path, "use_llm": False}, self.context(llm=quiet))
        self.assertEqual(quiet.asked, [])

    def test_images_of_others(self) -> None:
        """Files that come with Python: its own test data, made by other programs."""
        import test

        folder = os.path.join(os.path.dirname(str(test.__file__)), "imghdrdata")
        if not os.path.isdir(folder):
            self.skipTest("this Python has no test/imghdrdata with images of other programs")
        for name, form in (("python.png", "png"), ("python.jpg", "jpeg"), ("python.gif", "gif"), ("python.bmp", "bmp"), ("python.webp", "webp")):
            result = self.tool.execute({"file_path": os.path.join(folder, name)}, self.context())
            assert result.ok and result.result is not None
            image = result.result["image"]
            self.assertEqual((image["format"], image["width"], image["height"]), (form, 16, 16), name)
            self.assertNotIn("damage", self.kinds(result.result), name)
            self.assertIsNone(result.result["behind_the_end"], name)

    def test_a_large_file_in_little_memory_with_progress(self) -> None:
        path, size = os.path.join(self.dir, "large.png"), int(os.environ.get("MORTISE_TOOL_MB", "24"))
        with open(path, "wb") as file:
            file.write(FORMS["png"])
            for i in range(size):
                file.write(random.Random(i).randbytes(1 << 20))
        script = (
            "import json, resource, sys, tool\n"
            "class Context: artifacts = []; session_id = ''; limits = {}; told = 0; register_artifact = None\n"
            "def progress(message, done, total, unit): Context.told += 1; Context.last = (done, total)\n"
            "context = Context(); context.progress = progress\n"
            "r = tool.ImageAnalyzer().execute({'file_path': sys.argv[1]}, context)\n"
            "print(json.dumps([r.result['behind_the_end'], context.told, context.last, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))"
        )
        env = dict(os.environ, PYTHONPATH=os.pathsep.join([HERE, *sys.path]))
        run = subprocess.run([sys.executable, "-B", "-c", script, path], capture_output=True, text=True, env=env)
        self.assertEqual(run.returncode, 0, run.stderr)
        behind, told, last, kilobytes = json.loads(run.stdout)
        self.assertEqual((behind["size"], last[0], told), (size << 20, last[1], size + 1))
        self.assertGreater(behind["entropy"], 7.9)
        self.assertLess(kilobytes, 256 << 10)
        print("\n%d MB: %d MB of memory" % (os.path.getsize(path) >> 20, kilobytes >> 10), file=sys.stderr)

    def test_the_summary_says_what_stands_out(self) -> None:
        result = self.run_on(FORMS["png"])
        self.assertIn("name_does_not_fit", self.tool.summarize_for_llm(ToolResult(ok=True, result=result)))  # it ends in .log
        self.assertIn("nothing stands out", self.tool.summarize_for_llm(ToolResult(ok=True, result=dict(result, findings=[]))))


if __name__ == "__main__":
    unittest.main()
