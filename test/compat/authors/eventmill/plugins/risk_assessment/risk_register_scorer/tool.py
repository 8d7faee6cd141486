import csv, io, os, datetime as dt
from framework.plugins.protocol import ToolResult, ValidationResult

LEVELS = {"very low": 1, "low": 2, "medium": 3, "high": 4, "very high": 5}

def level(v):
    v = str(v).strip().lower()
    if v in LEVELS: return LEVELS[v]
    if v in "12345" and v: return int(v)
    raise ValueError(v)

class RiskRegisterScorer:
    """Likelihood x impact, ageing, 5x5 heat map."""
    def metadata(self): return {"tool_name": "risk_register_scorer", "version": "2.2.0"}
    def validate_inputs(self, payload):
        errs = []
        if not payload.get("csv") and not payload.get("file_path"): errs.append("csv or file_path is required")
        if payload.get("as_of"):
            try: dt.date.fromisoformat(payload["as_of"])
            except (ValueError, TypeError): errs.append("as_of must be YYYY-MM-DD")
        return ValidationResult(ok=not errs, errors=errs or None)
    def execute(self, payload, context):
        text = payload.get("csv")
        if not text:
            if not os.path.isfile(payload["file_path"]): return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message="register not found")
            text = open(payload["file_path"], encoding="utf-8-sig").read()
        rd = csv.DictReader(io.StringIO(text), delimiter=";" if text.split("\n", 1)[0].count(";") > text.split("\n", 1)[0].count(",") else ",")
        rd.fieldnames = [f.strip().lower() for f in rd.fieldnames or []]
        lack = {"id", "likelihood", "impact"} - set(rd.fieldnames)
        if lack: return ToolResult(ok=False, error_code="ARTIFACT_UNREADABLE", message="columns missing", details={"missing": sorted(lack)})
        as_of = dt.date.fromisoformat(payload["as_of"]) if payload.get("as_of") else None
        heat = [[0] * 5 for _ in range(5)]; risks, problems = [], []
        for r in rd:
            try: l, i = level(r["likelihood"]), level(r["impact"])
            except ValueError as e: problems.append({"id": r["id"], "value": str(e)}); continue
            overdue = None
            if as_of and r.get("due"):
                try: overdue = max(0, (as_of - dt.date.fromisoformat(r["due"].strip())).days)
                except ValueError: problems.append({"id": r["id"], "value": r["due"]})
            heat[l - 1][i - 1] += 1
            risks.append({"id": r["id"], "score": l * i, "rating": "extreme" if l * i >= 20 else "high" if l * i >= 12 else "moderate" if l * i >= 6 else "low", "overdue_days": overdue})
        risks.sort(key=lambda x: (-x["score"], x["id"]))
        return ToolResult(ok=True, result={"risks": risks, "heatmap": heat, "problems": problems, "overdue": sum(1 for r in risks if r["overdue_days"]), "total_score": sum(r["score"] for r in risks)})
    def summarize_for_llm(self, result):
        r = result.result
        return f"{len(r['risks'])} risks, total {r['total_score']}; top: " + ", ".join(f"{x['id']}={x['score']}" for x in r["risks"][:5]) + f"; {r['overdue']} overdue, {len(r['problems'])} problems."
