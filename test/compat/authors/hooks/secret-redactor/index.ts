/** Masks credentials in both directions of a channel. */
interface ChannelMessage { agentId?: string; channel: string; direction?: 'in' | 'out'; text: string; metadata?: Record<string, unknown> }
type Rule = readonly [name: string, re: RegExp];

const RULES: readonly Rule[] = [
  ['aws-key', /\bAKIA[0-9A-Z]{16}\b/g],
  ['github-token', /\bgh[pousr]_[A-Za-z0-9]{36}\b/g],
  ['private-key', /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g],
  ['bearer', /(?<=\bBearer\s)[A-Za-z0-9._~+/-]{20,}=*/g],
] as const;

export const redact = (text: string): { text: string; found: string[] } => {
  const found: string[] = [];
  let out = text;
  for (const [name, re] of RULES) out = out.replace(re, () => { found.push(name); return `[redacted:${name}]`; });
  return { text: out, found };
};

export const register = (ctx: { bus: { on: Function }; logger?: { info(msg: string): void } }): void => {
  const handler = (p: ChannelMessage): ChannelMessage => {
    const { text, found } = redact(p.text);
    if (found.length === 0) return p;
    return { ...p, text, metadata: { ...(p.metadata ?? {}), redacted: found } };   // clone-on-write
  };
  ctx.bus.on('channel.message.out@v1', handler, { priority: 900 }); // last word on what leaves
  ctx.bus.on('channel.message.in@v1', handler, { priority: 1 });
};
