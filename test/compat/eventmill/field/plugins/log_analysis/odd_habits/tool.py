"""Small habits of published tools, one an action."""

import concurrent.futures
import copy
import dataclasses
import glob
import io
import json
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import zipfile
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import framework.plugins.protocol as proto
from framework.plugins.protocol import *  # noqa: F403
from framework.plugins.protocol import EventMillToolProtocol, LLMResponse, QueryHints, ToolResult, ValidationResult


@dataclass
class Rich(ToolResult):
    score: float = 0.0


class Refused(Exception):
    pass


class OddHabits(EventMillToolProtocol):
    def __init__(self):
        self.calls = 0
        self.local = threading.local()

    def metadata(self):
        return {"tool_name": "odd_habits", "version": "0.0.1"}

    def validate_inputs(self, payload):
        payload.setdefault("added", "by validation")  # execute sees it
        if payload.get("refuse") == "tuple":
            return ValidationResult(ok=False, errors=("one", "two"))
        return ValidationResult(ok="act" in payload, errors=None if "act" in payload else ["act?"])

    def execute(self, payload, context):
        self.calls += 1
        return getattr(self, payload["act"])(payload, context)

    def summarize_for_llm(self, result):
        return "" if result.result is None else json.dumps(result.result, sort_keys=True, default=str)[:300]

    def positional(self, payload, context):
        return ToolResult(True, {"added": payload["added"], "calls": self.calls})

    def rich(self, payload, context):
        return Rich(ok=True, result={"hint": dataclasses.asdict(QueryHints(tier="heavy"))}, score=3.0)

    def nothing(self, payload, context):
        return ToolResult(ok=True)

    def empty(self, payload, context):
        return ToolResult(ok=True, result={})

    def fails_with_result(self, payload, context):
        return ToolResult(ok=False, result={"partial": [1, 2]}, error_code="LLM_QUERY_FAILED", message="half of it", details={"step": 2})

    def fails_bare(self, payload, context):
        return ToolResult(ok=False)

    def raises_own(self, payload, context):
        raise Refused("of our own kind", {"more": 1})

    def raises_key(self, payload, context):
        return ToolResult(ok=True, result={"x": payload["not there"]})

    def looks_at_context(self, payload, context):
        other = dataclasses.replace(context, session_id="other")
        return ToolResult(
            ok=True,
            result={
                "names": sorted(field.name for field in dataclasses.fields(context)),
                "other": other.session_id,
                "pillar": context.selected_pillar,
                "artifacts": [dataclasses.asdict(ref)["artifact_type"] for ref in copy.deepcopy(context.artifacts)],
                "logger": context.logger.name,
                "llm": [context.llm_enabled, context.llm_query is None],
                "getattr": getattr(context, "artifact_registry", "absent"),
                "missing": context.reference_data.get("no_such_key"),
                "frozen": proto.ArtifactRef.__dataclass_params__.frozen,
                "response": LLMResponse(ok=True).text,
                "limit": context.limits["timeout"],
            },
        )

    def temporary(self, payload, context):
        with tempfile.NamedTemporaryFile("w", suffix=".csv", prefix="odd", delete=False) as file:
            file.write("a,b\n1,2\n")
        named = os.path.join(tempfile.gettempdir(), "odd_habits.csv")
        shutil.move(file.name, named)
        ref = context.register_artifact(artifact_type="text", file_path=named, source_tool="odd_habits", metadata={})
        os.unlink(named)
        return ToolResult(ok=True, result={"kept": Path(ref.file_path).read_text(), "name": Path(ref.file_path).name})

    def archive(self, payload, context):
        memory = io.BytesIO()
        with zipfile.ZipFile(memory, "w") as archive:
            archive.writestr("x.txt", "x" * 1000)
        Path("bundle.zip").write_bytes(memory.getvalue())
        ref = context.register_artifact("archive", "bundle.zip", "odd_habits", {"files": 1, "nested": {"a": [1, None, True]}})
        return ToolResult(ok=True, result={"type": ref.artifact_type, "metadata": ref.metadata, "found": sorted(glob.glob("*.zip"))})

    def twice(self, payload, context):
        Path("twice.txt").write_text("first")
        one = context.register_artifact("text", "twice.txt", "odd_habits", {})
        Path("twice.txt").write_text("second")
        two = context.register_artifact("text", "twice.txt", "odd_habits", {})
        return ToolResult(ok=True, result={"same": one.artifact_id == two.artifact_id, "texts": [Path(one.file_path).read_text(), Path(two.file_path).read_text()]})

    def database(self, payload, context):
        with sqlite3.connect("workspace/state.db") as db:
            db.execute("create table if not exists seen (n integer)")
            db.execute("insert into seen values (?)", (self.calls,))
            rows = db.execute("select count(*) from seen").fetchone()[0]
        return ToolResult(ok=True, result={"rows": rows})

    def children(self, payload, context):
        out = subprocess.run([sys.executable, "-c", "import os; print('child', os.path.basename(os.getcwd()))"], capture_output=True, text=True)
        try:
            subprocess.run(["no-such-program-here"], check=True)
        except FileNotFoundError as exc:
            gone = exc.strerror
        return ToolResult(ok=True, result={"child": out.stdout, "code": out.returncode, "gone": gone})

    def pools(self, payload, context):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            squares = list(pool.map(lambda n: n * n, range(20)))
        return ToolResult(ok=True, result={"squares": sum(squares), "pickled": pickle.loads(pickle.dumps(ToolResult(True, {"a": 1}))).result})

    def processes(self, payload, context):
        import multiprocessing

        with multiprocessing.get_context("fork").Pool(2) as pool:
            return ToolResult(ok=True, result={"lengths": pool.map(len, ["a", "bb", "ccc"])})

    def alarm(self, payload, context):
        def late(number, frame):
            raise TimeoutError("our own limit")

        before = signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            time.sleep(5)
        except TimeoutError as exc:
            return ToolResult(ok=False, error_code="TIMEOUT", message=str(exc))
        finally:
            signal.signal(signal.SIGALRM, before)

    def asks_the_terminal(self, payload, context):
        try:
            answer = input("continue? ")
        except EOFError:
            answer = "no input"
        return ToolResult(ok=True, result={"answer": answer, "tty": sys.stdin.isatty()})

    def captures_output(self, payload, context):
        out = io.StringIO()
        with redirect_stdout(out):
            print("captured")
        warnings.warn("a warning of ours")
        return ToolResult(ok=True, result={"captured": out.getvalue()})

    def home(self, payload, context):
        cache = Path.home() / ".cache" / "eventmill"
        cache.mkdir(parents=True, exist_ok=True)
        (cache / "x").write_text("kept")
        return ToolResult(ok=True, result={"text": (cache / "x").read_text()})

    def leaves_the_directory(self, payload, context):
        os.makedirs("deeper", exist_ok=True)
        os.chdir("deeper")
        Path("here.txt").write_text("deep")
        ref = context.register_artifact("text", "here.txt", "odd_habits", {})
        os.chdir("..")
        return ToolResult(ok=True, result={"name": os.path.basename(ref.file_path)})

    def odd_values(self, payload, context):
        return ToolResult(
            ok=True,
            result={"tuple": (1, (2, 3)), 7: "int key", None: "none key", True: "true key", "big": 2**60, "float": 1e300, "text": "ü\u2028\x00\U0001f600", "deep": [[[[[[]]]]]]},
        )

    def outputs(self, payload, context):
        Path("artifacts/loose.md").write_text("# loose")
        return ToolResult(
            ok=True,
            result={"n": 1},
            message="see the files",
            output_artifacts=[
                {"file_path": "workspace/artifacts/loose.md", "artifact_type": "markdown"},
                {"file_path": "artifacts/not-there.md", "artifact_type": "markdown"},
                {"artifact_id": "art_made_up", "artifact_type": "text"},
            ],
        )

    def fails_with_outputs(self, payload, context):
        Path("half.txt").write_text("half")
        return ToolResult(ok=False, error_code="EXECUTION_ERROR", message="half done", output_artifacts=[{"file_path": "half.txt", "artifact_type": "text"}])

    def long_message(self, payload, context):
        return ToolResult(ok=False, error_code="PARSE_FAILED", message="m" * 1500, details={"errors": ["e" * 100] * 50})
