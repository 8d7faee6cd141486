"""Runs a session of tools in this interpreter, as the compatibility facts say and no more.

It shares no code with the host. A session comes in as JSON on standard input:

    tree       the directory `plugins`
    work       an empty directory
    evidence   [{path, type}], the analyst's files
    reference  {key: path of a JSON file}
    model      what a model answers to every question; null where there is none
    calls      [{tool, payload}]; "$0" in a payload is the first artifact's id

What came of each call goes out as JSON, and at last the artifacts of the session.
"""

import contextlib
import json
import logging
import os
import shutil
import sys
import types
from dataclasses import dataclass, field, make_dataclass
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

TEXTS = ("visualization", "content", "summary", "analysis", "report", "output")
SUFFIXES = {
    "pcap": "pcap", "pcapng": "pcap", "json": "json_events", "jsonl": "json_events", "log": "log_stream",
    "pdf": "pdf_report", "html": "html_report", "htm": "html_report", "png": "image", "jpg": "image", "jpeg": "image",
}  # fmt: skip
TYPES = ("pcap", "json_events", "log_stream", "risk_model", "cloud_audit_log", "pdf_report", "html_report", "image", "text")


# The modules that tools import.

Ref = make_dataclass(
    "ArtifactRef",
    ["artifact_id", "artifact_type", "file_path", ("storage_uri", Any, None), ("source_tool", Any, None), ("metadata", dict, field(default_factory=dict))],
    frozen=True,
)
ToolResult = make_dataclass("ToolResult", ["ok", *((name, Any, None) for name in ("result", "error_code", "message", "details", "output_artifacts"))])
ValidationResult = make_dataclass("ValidationResult", ["ok", ("errors", Any, None)])
Response = make_dataclass(
    "LLMResponse", ["ok", *((name, Any, None) for name in ("text", "error", "token_usage", "model_used", "transport_path", "fallback_reason"))]
)
Hints = make_dataclass(
    "QueryHints",
    [
        ("tier", str, "light"),
        ("needs_reasoning", bool, False),
        ("needs_structured_output", bool, False),
        ("prefers_native_file", bool, False),
        ("max_budget_cents", Any, None),
    ],
)


@runtime_checkable
class ToolProtocol(Protocol):
    def execute(self, payload, context): ...


@dataclass
class Context:
    session_id: str
    selected_pillar: str
    artifacts: list
    config: dict
    logger: logging.Logger
    reference_data: Any
    llm_enabled: bool
    llm_query: Any
    register_artifact: Any
    limits: dict


def modules(said):
    def module(name, **members):
        made = sys.modules[name] = types.ModuleType(name)
        made.__dict__.update(members)
        made.__path__ = []
        return made

    for made in (Ref, ToolResult, ValidationResult, Response, Hints):
        made.__module__ = "framework.plugins.protocol"
    mitre = said["reference"].get("mitre_techniques")
    techniques = json.load(open(mitre)) if mitre else {}
    for name in ("framework", "framework.plugins", "framework.logging", "framework.reference_data"):
        module(name)
    sys.modules["framework.plugins"].protocol = module(
        "framework.plugins.protocol",
        ArtifactRef=Ref, ToolResult=ToolResult, ValidationResult=ValidationResult, LLMResponse=Response, QueryHints=Hints,
        ExecutionContext=Context, EventMillToolProtocol=ToolProtocol,
    )  # fmt: skip
    module(
        "framework.logging.structured",
        log_llm_interaction=lambda prompt, response_text, model_id=None, history_turns=0, session_id=None, error=None: None,
    )
    module("framework.reference_data.mitre_attack", get_mitre_db=lambda: techniques)


# The session.


class Reference:
    def __init__(self, own, common):
        self.own, self.common = own, common

    def get(self, key, default=None):
        for path in (os.path.join(self.own, "data", key + ".json"), self.common.get(key)):
            if path and os.path.exists(path):
                with open(path) as file:
                    return json.load(file)
        return default


class Model:
    def __init__(self, text):
        self.text = text

    def query_text(self, prompt, system_context=None, max_tokens=4096, grounding_data=None, hints=None):
        return Response(True, self.text, None, {"total_tokens": 15}, "model", "text")


class Session:
    def __init__(self, said):
        self.said = said
        self.workspace = os.path.join(said["work"], "workspace")
        self.kept = os.path.join(said["work"], "kept")
        inner = os.path.join(self.workspace, "workspace")
        os.makedirs(os.path.join(inner, "artifacts"))
        os.environ["EVENTMILL_WORKSPACE"] = inner
        os.chdir(self.workspace)
        sys.path[0] = os.path.dirname(said["tree"])
        self.refs, self.tools, self.calls, self.n = [], {}, {}, 0
        for one in said["evidence"]:
            self.add(one["path"], one["type"], None, {"original_filename": os.path.basename(one["path"])})

    def add(self, path, kind, source, metadata):
        id = f"art_{len(self.refs) + 1:08x}"
        directory = os.path.join(self.kept, id)
        os.makedirs(directory)
        ref = Ref(id, kind, shutil.copy(path, directory), None, source, dict(metadata))
        self.refs.append(ref)
        return ref

    def tool(self, name):
        """Return the instance, the manifest and the directory of a tool."""
        if name not in self.tools:
            for pillar in sorted(os.listdir(self.said["tree"])):
                for directory in sorted(os.listdir(os.path.join(self.said["tree"], pillar))) if "." not in pillar and pillar[0] != "_" else []:
                    path = os.path.join(self.said["tree"], pillar, directory, "manifest.json")
                    if directory[0] == "_" or not os.path.exists(path):
                        continue
                    manifest = json.load(open(path))
                    if manifest["tool_name"] == name:
                        entry = os.path.basename(manifest["entry_point"])[: -len(".py")]
                        module = import_module(f"plugins.{pillar}.{directory}.{entry}")
                        self.tools[name] = getattr(module, manifest["class_name"])(), manifest, os.path.dirname(path)
        return self.tools[name]

    def call(self, name, payload):
        tool, manifest, directory = self.tool(name)
        had = len(self.refs)
        registered = {}

        def register_artifact(artifact_type, file_path, source_tool=None, metadata=None):
            if not os.path.isfile(file_path):  # known to the call alone
                ref = Ref(f"art_{0xFFFF0000 + len(registered):08x}", artifact_type, str(file_path), None, source_tool or name, dict(metadata or {}))
                registered[file_path] = ref
                return ref
            same = [r for r in self.refs if (r.source_tool, self.calls.get(r.artifact_id), self.bytes_of(r)) == (source_tool or name, self.n, self.bytes_at(file_path))
                    and (r.artifact_type, os.path.basename(r.file_path)) == (kind_of(artifact_type, file_path), os.path.basename(file_path))]  # fmt: skip
            ref = same[0] if same else self.add(file_path, kind_of(artifact_type, file_path), source_tool or name, metadata or {})
            self.calls[ref.artifact_id] = self.n
            registered[os.path.realpath(file_path)] = ref
            return Ref(ref.artifact_id, artifact_type, str(file_path), None, source_tool or name, dict(metadata or {}))

        self.n += 1
        outcome = dict.fromkeys(("result", "error_code", "message", "details", "output_artifacts"))
        outcome.update(ok=False, summary="", raised=False)
        id = payload.get("artifact_id")
        if isinstance(id, str) and id and all(ref.artifact_id != id for ref in self.refs):
            outcome.update(error_code="ARTIFACT_NOT_FOUND", details={"artifact_id": id}, artifacts=[])
            return outcome
        self.complete(payload)
        try:
            valid = tool.validate_inputs(payload)
            if not valid.ok:
                outcome.update(error_code="INPUT_VALIDATION_FAILED", details={"errors": valid.errors})
                return outcome
            model = self.said["model"]
            result = tool.execute(
                payload,
                Context(
                    "sess_000000000000", "", list(self.refs), {}, logging.getLogger("eventmill.plugin." + name),
                    Reference(directory, self.said["reference"]), model is not None, None if model is None else Model(model), register_artifact,
                    {"timeout": 30},
                ),
            )  # fmt: skip
            if result is None:
                raise TypeError("None")
        except Exception as exc:
            outcome.update(error_code="INTERNAL_ERROR", message=str(exc), raised=True)
            outcome["artifacts"] = [ref.artifact_type for ref in self.refs[had:]]
            return outcome
        outcome["ok"] = result.ok
        for member in ("result", "error_code", "message", "details", "output_artifacts"):
            outcome[member] = getattr(result, member, None)
        if not result.ok and not result.error_code:
            outcome["error_code"] = "INTERNAL_ERROR"  # a failure has one of the codes
        for one in (outcome["output_artifacts"] or []) if result.ok else []:
            path = one.get("file_path") or one.get("path") if isinstance(one, dict) else one if isinstance(one, str) else None
            if path and "\0" not in path and os.path.isfile(path):
                register_artifact((one.get("artifact_type") if isinstance(one, dict) else None) or "text", path, name)
        if result.ok and result.result is not None and not registered:
            self.save(name, manifest, result.result, register_artifact)
        if result.ok:
            outcome["summary"] = summary_of(tool, name, result)
        outcome["artifacts"] = [ref.artifact_type for ref in self.refs[had:]]
        return outcome

    def complete(self, payload):
        for ref in self.refs:
            if ref.artifact_id == payload.get("artifact_id"):
                payload.setdefault("file_path", ref.file_path)
                payload.setdefault("path", ref.file_path)
        for key in ("file_path", "path"):
            path = payload.get(key)
            if path and not os.path.exists(path):
                payload[key] = next((ref.file_path for ref in self.refs if os.path.basename(ref.file_path) == os.path.basename(path)), path)

    def save(self, name, manifest, result, register_artifact):
        produced = [kind for kind in manifest.get("artifacts_produced") or [] if kind != "none"][:1] or ["json_events"]
        kind = {"markdown": "text", "log_file": "log_stream", "pdf": "pdf_report"}.get(produced[0], produced[0])
        text = next((result[key] for key in TEXTS if isinstance(result.get(key), str) and result[key].strip()), None)
        if kind != "text":
            text = None  # the published host writes the text alone, under a type that it is not; ADR 0059
        path = os.path.join("workspace", "artifacts", f"{name}_{self.n:08d}_000000" + (".json" if text is None else ".md"))
        with open(path, "w") as file:
            file.write(json.dumps(result) if text is None else text)
        register_artifact(kind, path, name, {"auto_persisted": True})

    @staticmethod
    def bytes_at(path):
        with open(path, "rb") as file:
            return file.read()

    def bytes_of(self, ref):
        return self.bytes_at(ref.file_path)


def kind_of(said, path):
    if said in TYPES:
        return said
    for suffix in reversed(os.path.basename(path).lower().split(".")[1:]):
        if suffix in SUFFIXES:
            return SUFFIXES[suffix]
    return "text"


def summary_of(tool, name, result):
    try:
        text = tool.summarize_for_llm(result)
    except Exception:
        text = None
    return text if isinstance(text, str) else f"{name} completed successfully."


def main():
    said = json.load(sys.stdin)
    modules(said)
    session = Session(said)
    outcomes = []
    with contextlib.redirect_stdout(sys.stderr):
        for call in said["calls"]:
            text = json.dumps(call["payload"])
            for n, ref in enumerate(session.refs):
                text = text.replace(f'"${n}"', f'"{ref.artifact_id}"')
            outcomes.append(json.loads(json.dumps(session.call(call["tool"], json.loads(text)))))
    artifacts = [{"id": r.artifact_id, "type": r.artifact_type, "name": os.path.basename(r.file_path), "source_tool": r.source_tool or ""} for r in session.refs]
    json.dump({"outcomes": outcomes, "artifacts": artifacts, "workspace": session.workspace}, sys.stdout)


main()
