# netflow_top_talkers - NetOps tools, (c) internal
import csv, ipaddress, logging
from pathlib import Path
from types import SimpleNamespace

log = logging.getLogger("eventmill.plugin.netflow_top_talkers")
ALIASES = {"src": ("sa", "src_ip", "srcaddr", "source"), "dst": ("da", "dst_ip", "dstaddr", "destination"),
           "bytes": ("ibyt", "bytes", "octets", "doctets"), "packets": ("ipkt", "packets", "pkts", "dpkts")}


def _res(ok, result=None, code=None, msg=None, **details):
    # no ToolResult import on purpose: duck typing is enough for the host
    return SimpleNamespace(ok=ok, result=result, error_code=code, message=msg, details=details or None, output_artifacts=None)


def _columns(header):
    low = {h.strip().lower(): h for h in header}
    found = {}
    for want, names in ALIASES.items():
        for n in names:
            if n in low:
                found[want] = low[n]
                break
    return found


class NetflowTopTalkers:
    def metadata(self):
        return dict(tool_name="netflow_top_talkers", version="0.9.2", formats=["nfdump csv", "flow-tools csv"])

    def validate_inputs(self, payload):
        errs = []
        if not isinstance(payload.get("file_path"), str): errs.append("file_path: string required")
        top = payload.get("top", 10)
        if not str(top).isdigit() or int(top) == 0: errs.append("top: positive integer required")
        if payload.get("network"):
            try: ipaddress.ip_network(payload["network"], strict=False)
            except ValueError as e: errs.append("network: %s" % e)
        return SimpleNamespace(ok=not errs, errors=errs)

    def execute(self, payload, context):
        p = Path(payload["file_path"])
        if not p.exists():
            return _res(False, code="ARTIFACT_NOT_FOUND", msg="%s does not exist" % p.name)
        net = ipaddress.ip_network(payload["network"], strict=False) if payload.get("network") else None
        talk, flows, bad = {}, 0, 0
        with p.open(newline="", encoding="utf-8-sig") as fh:
            rd = csv.DictReader(fh)
            cols = _columns(rd.fieldnames or [])
            missing = [k for k in ("src", "dst", "bytes") if k not in cols]
            if missing:
                return _res(False, code="ARTIFACT_UNREADABLE", msg="not a flow export", missing_columns=missing)
            for row in rd:
                try:
                    s = ipaddress.ip_address(row[cols["src"]].strip()); d = ipaddress.ip_address(row[cols["dst"]].strip())
                    n = int(row[cols["bytes"]])
                except (ValueError, AttributeError, TypeError):
                    bad += 1
                    continue
                flows += 1
                for ip, way in ((s, "sent"), (d, "received")):
                    if net is not None and ip not in net: continue
                    e = talk.setdefault(str(ip), {"ip": str(ip), "sent": 0, "received": 0, "flows": 0})
                    e[way] += n; e["flows"] += 1
        if bad: log.info("%d rows skipped", bad)
        rows = sorted(talk.values(), key=lambda e: (-(e["sent"] + e["received"]), e["ip"]))
        return _res(True, {"flows": flows, "skipped_rows": bad, "hosts": len(rows), "top": rows[: int(payload.get("top", 10))]})

    def summarize_for_llm(self, result):
        r = result.result or {}
        return "; ".join(["%d flows, %d hosts" % (r.get("flows", 0), r.get("hosts", 0))] + ["%s out=%d in=%d" % (t["ip"], t["sent"], t["received"]) for t in r.get("top", [])[:5]])
