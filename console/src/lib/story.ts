/** Entries of the ledger in words: what happened to a call, a plan or an approval. */
import { isNumber, isObject, numeral, rounded, type Json } from "./json.ts";

/** Why policy decided so, as far as its sentence has that form. */
export interface Reason {
  says: string; // what the rule says; "" where it says nothing
  rule: string; // its name
  where: string; // file and line
}

/** Takes apart a sentence such as "mail.cedar:3 outside asks for approval: it leaves the house". */
export function reasonOf(text: string): Reason {
  const found = /^([^\s:]+:\d+) (\S+?)(?:,? (?:asks for approval|forbids it|denies it))?(?:: (.*))?$/s.exec(text);
  if (found !== null) return { says: found[3] ?? "", rule: found[2] ?? "", where: found[1] ?? "" };
  const builtIn = /^(\S+), rule (\d+)$/.exec(text);
  if (builtIn !== null) return { says: "", rule: builtIn[2] ?? "", where: builtIn[1] ?? "" };
  return { says: text, rule: "", where: "" };
}

const titles: Record<string, string> = {
  "call.pending": "Recorded; waiting for approval", "call.queued": "Recorded; queued", "call.started": "Started", "call.succeeded": "Succeeded", "call.failed": "Failed",
  "call.refused": "Refused before it ran", "call.unknown": "Outcome unknown", "call.replayed": "Answered with the first result of its key", "call.progress": "Still running", "call.cancel": "Told to stop", "call.settled": "Outcome recorded",
  "effect.intent": "Effect about to be sent", "effect.done": "Effect answered", "effect.late": "Effect answered after the call had ended",
  "approval.requested": "Approval requested", "approval.approved": "Approved", "approval.denied": "Denied by a person", "approval.expired": "Approval expired", "approval.void": "Approval void", "approval.consumed": "Approval used", "approval.refused": "Decision refused",
  "plan.proposed": "Plan proposed", "plan.started": "Plan started", "plan.succeeded": "Plan succeeded", "plan.failed": "Plan failed", "plan.unknown": "Outcome of the plan unknown", "plan.cancelled": "Plan stopped", "plan.refused": "Plan refused",
  "service.refused": "Host service refused", "model.called": "Model called", "artifact.registered": "Artifact registered",
};

/** Returns what an entry is about in words: its kind where there are none for it. */
export function titleOf(kind: string): string {
  return titles[kind] ?? kind;
}

/** A step of the pipeline that an entry tells of. */
export interface Detail {
  name: string;
  text: string;
  /** A sentence of policy. */
  policy?: boolean;
}

/** Returns the verdict of policy as a sentence begins with it. */
export function verdictOf(verdict: string): string {
  return { allow: "allow", deny: "deny", allow_with_approval: "allow after approval" }[verdict] ?? verdict;
}

const text = (v: Json | undefined): string => (typeof v === "string" ? v : "");

/** Returns what an entry says, in the order of the pipeline. */
export function detailsOf(body: Json | undefined): Detail[] {
  if (!isObject(body)) return [];
  const details: Detail[] = [];
  const add = (name: string, value: string, policy = false): void => {
    if (value !== "") details.push(policy ? { name, text: value, policy } : { name, text: value });
  };
  const decision = body["decision"];
  if (isObject(decision)) {
    const reasons = Array.isArray(decision["reasons"]) ? decision["reasons"].map((r) => text(r)).filter((r) => r !== "") : [];
    add("Policy decided", verdictOf(text(decision["verdict"])));
    for (const reason of reasons) add("By", reason, true);
  }
  add("Why", text(body["why"]), true);
  add("Decided by", text(body["decided_by"]));
  add("By", text(body["by"]));
  add("Reason", text(body["reason"]));
  const error = body["error"];
  if (isObject(error)) add(`Error ${text(error["code"])}`, text(error["message"]));
  add("Outcome", text(body["outcome"]));
  const effects = body["effects"];
  if (Array.isArray(effects) && effects.length > 0) add("Effects", effects.map((e) => (typeof e === "string" ? e.replaceAll("_", " ") : "")).filter((e) => e !== "").join(", "));
  if (body["enforcement"] === "reported") add("Run by", "another program");
  else add("Sandbox level", text(body["isolation"]).replaceAll("_", " "));
  const metrics = body["metrics"];
  if (isObject(metrics) && isNumber(metrics["latency_ms"])) add("Took", `${numeral(rounded(metrics["latency_ms"], 0))} ms`);
  return details;
}
