'use strict';
/** Text.Dedupe - near duplicates by shingles and Jaccard. */
class Deduper {
  constructor({ shingle = 3, threshold = 0.7 } = {}) { this.k = shingle; this.threshold = threshold; }
  shingles(text) {
    const w = text.toLowerCase().normalize('NFKC').match(/[\p{L}\p{N}]+/gu) ?? [];
    if (w.length < this.k) return new Set([w.join(' ')]);
    return new Set(w.slice(0, w.length - this.k + 1).map((_, i) => w.slice(i, i + this.k).join(' ')));
  }
  static jaccard(a, b) { let n = 0; for (const x of a) if (b.has(x)) n++; return n / (a.size + b.size - n || 1); }
  run(items) {
    const kept = [], duplicates = [];
    for (const it of items) {
      const s = this.shingles(it.text);
      let best = null;
      for (const k of kept) { const j = Deduper.jaccard(s, k.s); if (j >= this.threshold && (!best || j > best.j)) best = { id: k.id, j }; }
      if (best) duplicates.push({ id: it.id, of: best.id, similarity: Math.round(best.j * 1000) / 1000 });
      else kept.push({ id: it.id, s });
    }
    return { kept: kept.map((k) => k.id), duplicates };
  }
}

function call(env = {}) {
  const p = env.payload, t0 = Date.now();
  const bad = (message) => ({ result: null, metrics: { latency_ms: Date.now() - t0 }, error: { code: 'VALIDATION_ERROR', message } });
  if (!p || !Array.isArray(p.items)) return bad('payload.items must be a list');
  const ids = new Set();
  for (const [i, it] of p.items.entries()) {
    if (!it || typeof it.id !== 'string' || typeof it.text !== 'string') return bad(`items[${i}] needs id and text`);
    if (ids.has(it.id)) return bad(`items[${i}]: id ${it.id} twice`);
    ids.add(it.id);
  }
  return { result: new Deduper(p.options).run(p.items), metrics: { latency_ms: Date.now() - t0, compared: p.items.length }, error: null };
}

(async () => {
  let rest = '';
  for await (const chunk of process.stdin) {
    rest += chunk;
    for (let nl; (nl = rest.indexOf('\n')) !== -1; rest = rest.slice(nl + 1)) {
      const m = JSON.parse(rest.slice(0, nl));
      const out = m.type === 'handshake'
        ? { type: 'handshake', manifest: { plugin_id: 'Text.Dedupe', plugin_version: '1.0.0', protocol_version: 'rterm.plugin.v1', exposed_tools: ['Text.Dedupe'], capabilities: [] }, note: 'an extra member' }
        : { type: 'response', request_id: m.request_id, status: 'ok', output: call(m.input) };
      process.stdout.write(JSON.stringify(out) + '\n');
    }
  }
})();
