// Takes what looks like a key or a password out of what people write, of all that
// a model is sent, and of what leaves by a channel. A model is sent its prompt,
// what was said, the input of each use of a tool and what each tool returned; all
// of it is in model.before@v1. It fails the turn rather than let something through
// that it could not look at.

import { redact, redactText } from "./redact";

export function register(ctx): void {
  const one = (event: string) =>
    ctx.bus.on(event, (e) => {
      const text = redactText(e.text);
      if (text === e.text) return undefined;
      ctx.logger.warn("a secret was removed", { event, session: e.sessionId });
      return { ...e, text };
    }, { priority: 10, deadlineMs: 1000 });
  one("session.message.received@v1");
  one("channel.message.in@v1");
  one("channel.message.out@v1");

  ctx.bus.on("model.before@v1", (e) => {
    let changed = false;
    const messages = e.messages.map((m) => {
      const clean: any = { ...m, content: redactText(m.content) };
      if (m.toolUses) clean.toolUses = m.toolUses.map((u) => ({ ...u, input: redact(u.input) }));
      if (m.toolResults) clean.toolResults = m.toolResults.map((r) => ({ ...r, text: redactText(r.text) }));
      if (same(m, clean)) return m;
      changed = true;
      return clean;
    });
    return changed ? { ...e, messages } : undefined;
  }, { priority: 200, deadlineMs: 1000 });
}

function same(m, clean): boolean {
  return m.content === clean.content &&
    (m.toolUses ?? []).every((u, n) => JSON.stringify(u.input) === JSON.stringify(clean.toolUses[n].input)) &&
    (m.toolResults ?? []).every((r, n) => r.text === clean.toolResults[n].text);
}
