type Message = { role: 'system' | 'user' | 'assistant' | 'tool'; content: string | Array<{ type: string; text?: string }> };
interface ModelBefore { agentId: string; sessionId: string; turnIndex?: number; messages: Message[] }

const MAX_CHARS = 400;

const size = (m: Message): number =>
  typeof m.content === 'string' ? m.content.length : m.content.reduce((n, part) => n + (part.text?.length ?? 0), 0);

export function trim(messages: Message[], max: number): { kept: Message[]; dropped: number } {
  const system = messages.filter((m) => m.role === 'system');
  const rest = messages.filter((m) => m.role !== 'system');
  let room = max - system.reduce((n, m) => n + size(m), 0);
  const kept: Message[] = [];
  for (let i = rest.length - 1; i >= 0; i--) {
    const m = rest[i] as Message;
    if (size(m) > room && kept.length > 0) break;      // the newest always stays
    room -= size(m);
    kept.unshift(m);
  }
  while (kept[0]?.role === 'tool') kept.shift();        // no orphaned tool results
  return { kept: [...system, ...kept], dropped: messages.length - system.length - kept.length };
}

export function register(ctx: any): void {
  ctx.bus.on('model.before@v1', async (payload: ModelBefore) => {
    if (!Array.isArray(payload.messages)) return payload;
    const { kept, dropped } = trim(payload.messages, MAX_CHARS);
    if (dropped > 0) await Promise.resolve(ctx.logger?.info?.(`dropped ${dropped} messages`));
    payload.messages = kept;
    return payload;
  }, { priority: 200 } satisfies { priority: number });
}
