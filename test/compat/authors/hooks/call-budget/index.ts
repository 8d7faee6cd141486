import { limitFor } from './limits.ts';

class Budget {
  private used = new Map<string, number>();
  constructor(private readonly limit: (tool: string) => number) {}
  take(session: string, tool: string): number | null {
    const key = `${session}\u0000${tool}`;
    const n = (this.used.get(key) ?? 0) + 1;
    if (n > this.limit(tool)) return null;
    this.used.set(key, n);
    return n;
  }
  reset(session: string) {
    for (const k of [...this.used.keys()]) if (k.startsWith(session + '\u0000')) this.used.delete(k);
  }
}

export function register(ctx: any): void {
  const budget = new Budget(limitFor);
  ctx.bus.on('session.opened@v1', ({ sessionId }: { sessionId: string }) => budget.reset(sessionId));
  ctx.bus.on('tool.before@v1', (p: any) => {
    const n = budget.take(p.sessionId ?? '-', p.toolName);
    return n === null ? { allow: false, reason: `${p.toolName}: limit of ${limitFor(p.toolName)} calls per session reached` } : { allow: true };
  });
}
