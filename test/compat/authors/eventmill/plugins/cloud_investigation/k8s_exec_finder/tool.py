import json, os
from collections import defaultdict

class TR:
    def __init__(self, ok, result=None, error_code=None, message=None, details=None, output_artifacts=None):
        self.ok, self.result, self.error_code, self.message, self.details, self.output_artifacts = ok, result, error_code, message, details, output_artifacts

class VR:
    def __init__(self, ok, errors=None): self.ok, self.errors = ok, errors

class K8sExecFinder:
    def __init__(self): self.runs = 0
    def metadata(self): return {"tool_name": "k8s_exec_finder", "version": "1.0.0", "runs": self.runs}

    def validate_inputs(self, payload):
        if not isinstance(payload, dict): return VR(False, ["payload must be an object"])
        ns = payload.get("namespaces")
        if ns is not None and not isinstance(ns, (list, str)): return VR(False, ["namespaces: list or comma separated text"])
        return VR(True) if payload.get("file_path") else VR(False, ["file_path"])

    def execute(self, payload, context):
        self.runs += 1
        if not os.path.isfile(payload["file_path"]): return TR(False, error_code="FILE_NOT_FOUND", message=payload["file_path"])
        ns = payload.get("namespaces"); ns = ns.split(",") if isinstance(ns, str) else ns
        hits, secret_reads, seen, broken = [], defaultdict(int), set(), 0
        with open(payload["file_path"]) as fh:
            for line in fh:
                try: ev = json.loads(line)
                except ValueError: broken += bool(line.strip()); continue
                if ev.get("auditID") in seen: continue
                seen.add(ev.get("auditID"))
                o, user = ev.get("objectRef") or {}, (ev.get("user") or {}).get("username", "?")
                if ns and o.get("namespace") not in ns: continue
                if o.get("resource") == "pods" and o.get("subresource") in ("exec", "attach", "portforward"):
                    hits.append({"user": user, "namespace": o.get("namespace"), "pod": o.get("name"), "kind": o["subresource"], "code": (ev.get("responseStatus") or {}).get("code")})
                elif o.get("resource") == "secrets" and ev.get("verb") in ("get", "list", "watch"): secret_reads[user] += 1
        return TR(True, {"events": len(seen), "broken_lines": broken, "exec": hits, "secret_reads": dict(secret_reads), "suspicious_users": sorted({h["user"] for h in hits} & set(secret_reads))})

    def summarize_for_llm(self, result):
        r = result.result
        return "K8s audit: %d events, %d exec/attach, secret readers: %s" % (r["events"], len(r["exec"]), ", ".join(r["secret_reads"]) or "none")
