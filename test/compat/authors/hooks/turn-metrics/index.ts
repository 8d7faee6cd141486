enum Kind { Tool = 'tool', Model = 'model', Session = 'session' }

interface Counter { n: number; failed: number; ms: number; max: number }

class Metrics {
  private readonly data = new Map<string, Counter>();
  add(kind: Kind, name: string, ms = 0, ok = true): void {
    const key = `${kind}:${name}`;
    const c = this.data.get(key) ?? { n: 0, failed: 0, ms: 0, max: 0 };
    c.n += 1; c.ms += ms; c.max = Math.max(c.max, ms);
    if (!ok) c.failed += 1;
    this.data.set(key, c);
  }
  report(kind?: string) {
    const rows = [...this.data.entries()]
      .filter(([k]) => !kind || k.startsWith(kind + ':'))
      .map(([key, c]) => ({ key, calls: c.n, failed: c.failed, meanMs: c.n ? Math.round(c.ms / c.n) : 0, maxMs: c.max }));
    rows.sort((a, b) => b.calls - a.calls || a.key.localeCompare(b.key));
    return { rows, total: rows.reduce((s, r) => s + r.calls, 0) };
  }
}

export function register(ctx: any): void {
  const metrics = new Metrics();          // one per agent: register runs once per agent
  ctx.bus.on('tool.after@v1', (e: any) => metrics.add(Kind.Tool, e.toolName, e.durationMs, e.ok !== false));
  ctx.bus.on('model.after@v1', (e: any) => metrics.add(Kind.Model, 'turn', e.durationMs ?? 0, e.error === undefined));
  ctx.bus.on('session.closed@v1', (e: any) => metrics.add(Kind.Session, e.reason ?? 'unknown'));
  ctx.tools.add({
    name: 'metrics_report',
    description: 'Calls, failures and times since the agent started',
    schema: { type: 'object', properties: { kind: { type: 'string', enum: ['tool', 'model', 'session'] } }, additionalProperties: false },
    handler: async (args: { kind?: string }) => metrics.report(args?.kind),
  });
}
