import json, os
from framework.plugins.protocol import ToolResult, ValidationResult
from plugins.cloud_investigation.iam_policy_linter.rules import RULES, aslist

ORDER = ["critical", "high", "medium", "low"]


class IamPolicyLinter(object):
    def metadata(self):
        return {"tool_name": "iam_policy_linter", "version": "1.0.0", "rules": [r[0] for r in RULES]}

    def validate_inputs(self, payload):
        if isinstance(payload.get("policy"), (dict, str)) or payload.get("file_path"):
            return ValidationResult(ok=True, errors=[])
        return ValidationResult(ok=False, errors=["policy (object or JSON text) or file_path"])

    def execute(self, payload, context):
        pol = payload.get("policy")
        if pol is None:
            if not os.path.exists(payload["file_path"]):
                return ToolResult(ok=False, error_code="ARTIFACT_NOT_FOUND", message="policy file missing")
            with open(payload["file_path"]) as fh:
                pol = fh.read()
        if isinstance(pol, str):
            try:
                pol = json.loads(pol)
            except ValueError as e:
                return ToolResult(ok=False, error_code="PARSE_FAILED", message="policy is not JSON: %s" % e, details={})
        findings = []
        for i, st in enumerate(aslist(pol.get("Statement"))):
            for code, sev, fn in RULES:
                if fn(st):
                    findings.append({"rule": code, "severity": sev, "statement": st.get("Sid", i), "what": fn.__name__})
        findings.sort(key=lambda f: ORDER.index(f["severity"]))
        return ToolResult(ok=True, result={"statements": len(aslist(pol.get("Statement"))), "findings": findings,
                                           "grade": "F" if findings and findings[0]["severity"] == "critical" else "C" if findings else "A"})

    def summarize_for_llm(self, result):
        r = result.result
        return "IAM policy grade %s; %d findings in %d statements. %s" % (r["grade"], len(r["findings"]), r["statements"], " ".join("%(rule)s(%(severity)s)" % f for f in r["findings"][:10]))
