// From a chat's event to a request to the kernel. A pipe, and no more: it does
// not decide, it does not look anything up, and it gives no rights. Whose
// rights an external user has is for the host to know.

import { createHash } from "node:crypto";
import { InvalidInput } from "mortise";

/** Something that happened in a chat. */
export interface ChatEvent {
  provider: string;
  workspace: string;
  user: { id: string };
  channel: string;
  text: string;
  ts: string;
  kind: "message" | "mention" | "command";
}

/** What the kernel is asked for. */
export interface SubmitRequest {
  intent: { type: string; payload: Record<string, unknown> };
  principal: { provider: string; external_id: string };
  context: Record<string, unknown>;
  constraints: Record<string, unknown>;
  idempotency_key: string;
  metadata: Record<string, unknown>;
}

const commands: Readonly<Record<string, string>> = {
  "/outreach draft": "Funding.Outreach.Email.Generate",
  "/outreach send": "Funding.Outreach.Email.Send",
};
const members = ["professor_id", "tone", "to", "from", "subject"];

/** Turns an event into a request; the same event is always the same request, key included. */
export function toRequest(event: ChatEvent): SubmitRequest {
  const { provider, workspace, channel, ts, kind } = event;
  return {
    intent: kind === "command" ? command(event.text) : question(event.text),
    principal: { provider, external_id: `${workspace}/${event.user.id}` },
    context: { request: { scope: `chat-${provider}` }, chat: { workspace, channel } },
    constraints: {},
    idempotency_key: `chat:${digest(provider, workspace, channel, ts)}`,
    metadata: { source: "chat", provider, workspace, channel, ts, kind },
  };
}

/** A key for an outcome: one for each request and status. */
export function outcomeKey(reference: string, status: string): string {
  return `outcome:${digest(reference, status)}`;
}

function question(text: string): SubmitRequest["intent"] {
  return { type: "Support.QA.Answer", payload: { question: text.trim() } };
}

/** Reads `/outreach send professor_id=910 to=a@example.org subject="Two words"`. */
function command(text: string): SubmitRequest["intent"] {
  const [, name = "", verb = "", rest = ""] = /^\s*(\S+)(?:\s+(\S+))?\s*(.*)$/su.exec(text) ?? [];
  const known = `${name} ${verb}`;
  const type = Object.hasOwn(commands, known) ? commands[known] : undefined;
  if (type === undefined) throw new InvalidInput(`text: ${JSON.stringify(known.slice(0, 80))} is no command; there are ${Object.keys(commands).join(", ")}`);
  const payload: Record<string, unknown> = {};
  let at = 0;
  for (const found of rest.matchAll(/\s*([a-z_]+)=(?:"([^"]*)"|([^\s"]+))(?=\s|$)/gy)) {
    const [all, member = "", quoted, plain] = found;
    at = found.index + all.length;
    if (!members.includes(member)) throw new InvalidInput(`text: ${member} is not part of an outreach; there are ${members.join(", ")}`);
    if (Object.hasOwn(payload, member)) throw new InvalidInput(`text: ${member} stands there twice`);
    const value = quoted ?? plain ?? "";
    payload[member] = member === "professor_id" && /^[0-9]{1,15}$/.test(value) ? Number(value) : value;
  }
  if (rest.slice(at).trim() !== "") throw new InvalidInput(`text: ${JSON.stringify(rest.slice(at).trim().slice(0, 80))} is not of the form name=value`);
  return { type, payload };
}

function digest(...parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}
