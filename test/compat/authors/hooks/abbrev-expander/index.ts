/* Expands desk slang before the model sees a message; owners only may define new words. */
interface Received { sessionId: string; text: string; senderRole?: string; senderUserId?: string }

export function register(ctx: any): void {
  const lexicon: Record<string, string> = { eod: 'end of day', asap: 'as soon as possible', poc: 'proof of concept' };
  let failures = 0;

  ctx.bus.on('session.message.received@v1', (p: Received) => {
    const def = /^!define\s+(\w+)\s*=\s*(.+)$/.exec(p.text);
    if (def) {
      if (p.senderRole !== 'owner') throw new Error('only an owner may define words');   // skipped by default: the text goes on unchanged
      lexicon[def[1]!.toLowerCase()] = def[2]!.trim();
      return { ...p, text: `Note: "${def[1]}" means "${def[2]!.trim()}".` };
    }
    const text = p.text.replace(/\b[A-Za-z]{2,8}\b/g, (w) => lexicon[w.toLowerCase()] ?? w);
    return { ...p, text };
  });

  ctx.bus.on('plugin.error@v1', (e: { pluginId: string; message: string }) => {
    if (e.pluginId === 'abbrev-expander') failures++;
  });

  ctx.tools.add({ name: 'lexicon_status', schema: { type: 'object', properties: {} }, handler: () => ({ words: Object.keys(lexicon).length, failures }) });
}
