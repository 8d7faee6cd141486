// Takes what looks like a key or a password out of what people write, of what a
// model is sent and of what leaves by a channel. It fails the turn rather than
// let something through that it could not look at.

const patterns: [name: string, pattern: RegExp][] = [
  ["private key", /-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]{0,8000}-----END [A-Z ]*PRIVATE KEY-----/g],
  ["AWS key", /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g],
  ["GitHub token", /\bgh[pousr]_[A-Za-z0-9]{36,255}\b/g],
  ["Slack token", /\bxox[abprs]-[A-Za-z0-9-]{10,250}\b/g],
  ["API key", /\bsk-[A-Za-z0-9_-]{20,200}\b/g],
  ["JSON web token", /\beyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,1000}\b/g],
  ["password", /\b(?:password|passwd|secret)\s{0,3}[:=]\s{0,3}[^\s"']{6,200}/gi],
];

function redact(text: string): string {
  for (const [name, pattern] of patterns) {
    text = text.replace(pattern, `[${name} removed]`);
  }
  return text;
}

export function register(ctx): void {
  const one = (event: string) =>
    ctx.bus.on(event, (e) => {
      const text = redact(e.text);
      if (text === e.text) return undefined;
      ctx.logger.warn("a secret was removed", { event, session: e.sessionId });
      return { ...e, text };
    }, { priority: 10 });
  one("session.message.received@v1");
  one("channel.message.in@v1");
  one("channel.message.out@v1");

  ctx.bus.on("model.before@v1", (e) => {
    let changed = false;
    const messages = e.messages.map((m) => {
      if (typeof m.content !== "string") return m;
      const content = redact(m.content);
      if (content === m.content) return m;
      changed = true;
      return { ...m, content };
    });
    return changed ? { ...e, messages } : undefined;
  }, { priority: 200 });
}
