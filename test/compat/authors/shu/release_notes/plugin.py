"""Conventional commits -> release notes -> knowledge base."""
import re
from collections import OrderedDict

HEAD = re.compile(r"^(?P<sha>[0-9a-f]{7,40})\s+(?P<type>[a-z]+)(?:\((?P<scope>[^)]+)\))?(?P<bang>!)?:\s+(?P<subject>.+)$")
SECTIONS = OrderedDict([("feat", "Features"), ("fix", "Bug fixes"), ("perf", "Performance"), ("docs", "Documentation")])


def parse_log(text):
    commits, junk = [], []
    for n, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line:
            continue
        m = HEAD.match(line)
        (commits.append(m.groupdict()) if m else junk.append(n))
    return commits, junk


def bump(version, commits):
    major, minor, patch = (int(x) for x in version.split("."))
    if any(c["bang"] for c in commits):
        return "%d.0.0" % (major + 1)
    if any(c["type"] == "feat" for c in commits):
        return "%d.%d.0" % (major, minor + 1)
    return "%d.%d.%d" % (major, minor, patch + 1)


def render(version, commits):
    out = ["# %s" % version, ""]
    breaking = [c for c in commits if c["bang"]]
    if breaking:
        out += ["## Breaking changes", ""] + ["- %s" % c["subject"] for c in breaking] + [""]
    for key, title in SECTIONS.items():
        rows = [c for c in commits if c["type"] == key]
        if not rows:
            continue
        out += ["## " + title, ""]
        for c in rows:
            out.append("- %s%s (%s)" % ("**%s:** " % c["scope"] if c["scope"] else "", c["subject"], c["sha"][:7]))
        out.append("")
    return "\n".join(out).rstrip() + "\n"


class Result:
    def __init__(self, status, data=None, error=None, diagnostics=None):
        self.status, self.data, self.error = status, data, error
        self.diagnostics = diagnostics or []


class Plugin:
    name = "release_notes"
    version = "1.0.0"

    def get_schema(self):
        return {"type": "object", "title": "Release notes", "description": "Composes release notes from a commit log",
                "properties": {
                    "op": {"type": "string", "enum": ["compose", "publish"]},
                    "log": {"type": "string"},
                    "previous": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
                    "kb_id": {"type": "string", "x-ui": {"show_when": {"op": "publish"}}}},
                "required": ["op", "log", "previous"]}

    def get_output_schema(self):
        return {"type": "object", "required": ["version", "markdown"],
                "properties": {"version": {"type": "string"}, "markdown": {"type": "string"}, "ko_id": {"type": ["string", "null"]}}}

    async def execute(self, params, context, host):
        commits, junk = parse_log(params["log"])
        if not commits:
            return Result("error", error={"code": "no_commits", "message": "no conventional commit in the log"})
        version = bump(params["previous"], commits)
        data = {"version": version, "markdown": render(version, commits)}
        notes = ["line %d ignored" % n for n in junk]
        if params["op"] == "publish":
            kb_id = params.get("kb_id")
            if not kb_id:
                return Result("error", data={"version": version}, error={"code": "missing_kb", "message": "publish needs kb_id"})
            fields = dict(title="Release " + version, content=data["markdown"], source_id="release:" + version)
            catch_all = getattr(host.kb, "ingest", None)
            if catch_all is not None:
                got = await catch_all(kb_id, **fields)
            else:
                notes.append("catch-all ingest absent, used ingest_text")
                got = await host.kb.ingest_text(kb_id, **fields)
            data["ko_id"] = got.get("ko_id")
        return Result("success", data, diagnostics=notes)
