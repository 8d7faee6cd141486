"""Groups log lines by template (variables masked)."""
import re
from pathlib import Path
from collections import OrderedDict
from framework.plugins.protocol import ToolResult, ValidationResult

MASKS = [(re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?Z?"), "<TIME>"),
         (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"), "<IP>"),
         (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"), "<UUID>"),
         (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<HEX>"),
         (re.compile(r"\b\d+\b"), "<N>")]


def template(line):
    for rx, name in MASKS:
        line = rx.sub(name, line)
    return line.strip()


class LogTemplateMiner:
    def metadata(self):
        return {"tool_name": "log_template_miner", "version": "1.0.0", "masks": [m for _, m in MASKS]}

    def validate_inputs(self, payload):
        errors = []
        if not payload.get("file_path"):
            errors.append("file_path is required")
        if not re.fullmatch(r"[1-9]\d*", str(payload.get("max_templates", 20))):
            errors.append("max_templates must be a positive integer")
        return ValidationResult(ok=not errors, errors=errors)

    def execute(self, payload, context):
        path = Path(payload["file_path"])
        if path.is_dir():
            files = sorted(p for p in path.iterdir() if p.suffix in (".log", ".txt"))
        elif path.is_file():
            files = [path]
        else:
            return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message=str(path))
        groups = OrderedDict()
        total = 0
        for f in files:
            for line in f.read_text(errors="replace").splitlines():
                if not line.strip():
                    continue
                total += 1
                g = groups.setdefault(template(line), {"count": 0, "sample": line})
                g["count"] += 1
        rows = sorted(({"template": t, **g} for t, g in groups.items()), key=lambda r: -r["count"])
        rare = [r["template"] for r in rows if r["count"] == 1]
        n = int(payload.get("max_templates", 20))
        # `report`: a long text on purpose, the shell saves it as Markdown
        report = "# Templates\n\n" + "\n".join(f"- {r['count']} x `{r['template']}`" for r in rows)
        return ToolResult(ok=True, result={"lines": total, "templates": len(rows), "top": rows[:n], "rare": rare[:n], "report": report})

    def summarize_for_llm(self, result):
        # long logs make long summaries; the framework cuts
        r = result.result
        return f"{r['lines']} lines, {r['templates']} templates. " + " | ".join(f"{t['count']}x {t['template']}" for t in r["top"])[:1800]
