#!/usr/bin/env python3
"""Switchboard agent: turns a funding outreach intent into a plan proposal. Stateless."""
import json
import sys

NAME, VERSION = "Outreach.Switchboard", "1.0.0"
REQUIRED = ["student.profile", "professor.entity"]


def dig(ctx, dotted):
    if dotted in ctx:                       # flat keys are accepted as well
        return ctx[dotted]
    for part in dotted.split("."):
        if not isinstance(ctx, dict) or part not in ctx:
            return None
        ctx = ctx[part]
    return ctx


def propose(inp):
    intent, ctx = inp.get("intent") or {}, inp.get("context") or {}
    missing = [f for f in REQUIRED if dig(ctx, f) in (None, {}, "")]
    if missing:
        return {"agent_name": NAME, "agent_version": VERSION, "kind": "step_output", "confidence": 0.0,
                "rationale": {"short": "context is incomplete", "signals": ["missing:" + f for f in missing]},
                "error": {"code": "NEEDS_CONTEXT", "message": "missing context: " + ", ".join(missing), "missing_fields": missing}}
    prof = dig(ctx, "professor.entity")
    signals = ["intent_type:" + str(intent.get("type")), "has_professor_id"]
    actions, steps = [], []
    if not prof.get("summary"):
        actions.append({"operator": "Professor.Summarize", "payload": {"professor_id": prof["id"]}, "policy_tags": ["read_only"],
                        "idempotency_hint": f"prof_sum:{prof['id']}"})
        steps.append({"step_id": "s1", "action": "Professor.Summarize", "gate": "none"})
    else:
        signals.append("has_professor_summary")
    actions.append({"operator": "Apply.EmailDraft", "payload": {"professor_id": prof["id"], "tone": (inp.get("constraints") or {}).get("tone", "formal")},
                    "policy_tags": ["writes_final"], "idempotency_hint": f"apply:{prof['id']}"})
    steps.append({"step_id": f"s{len(steps) + 1}", "action": "Apply.EmailDraft", "gate": "human_apply"})
    return {"agent_name": NAME, "agent_version": VERSION, "kind": "plan_proposal", "confidence": 0.9 if prof.get("summary") else 0.78,
            "rationale": {"short": "Outreach draft wanted.", "signals": signals}, "required_actions": actions,
            "proposed_plan": {"steps": steps}, "suggestions": [{"type": "followup", "text": "Short or medium-length email?"}]}


def main():
    for line in sys.stdin:
        msg = json.loads(line)
        if msg["type"] == "handshake":
            out = {"type": "handshake", "manifest": {"plugin_id": NAME, "plugin_version": VERSION, "protocol_version": msg["protocol_version"],
                                                     "exposed_tools": [NAME], "capabilities": []}}
        else:
            out = {"type": "response", "request_id": msg["request_id"], "status": "ok", "output": propose(msg.get("input") or {}), "metadata": {}}
        print(json.dumps(out), flush=True)
        if msg["type"] != "handshake":
            return


if __name__ == "__main__":
    main()
