'use strict';
const { createHmac } = require('node:crypto');
const { Store } = require('./store.cjs');
const NAME = 'Webhook.Emit', VERSION = '1.0.2', SCOPE = 'webhook:emit';
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

const envelope = (status, result, error, extra = {}) => ({
  status, result, artifacts: [], metrics: { latency_ms: extra.ms ?? 0, provider: 'http', attempts: extra.attempts ?? 0 }, error,
  nondeterminism: { is_nondeterministic: true, reasons: ['remote_service'], stability: 'medium' },
});

async function run(input) {
  const { payload: p, idempotency_key: key, auth_context: auth = {}, trace_context: trace = {}, policy_snapshot: policy } = input ?? {};
  if (!p || typeof p.url !== 'string' || !/^https?:\/\//.test(p.url) || typeof p.event !== 'string' || !key) return envelope('failed', null, { code: 'VALIDATION_ERROR', message: 'url, event and idempotency_key are required' });
  if (!(auth.scopes ?? []).includes(SCOPE)) return envelope('failed', null, { code: 'POLICY_DENIED', message: `scope ${SCOPE} required` });
  if (policy?.denied_effects?.includes('webhook_emit')) return envelope('failed', null, { code: 'POLICY_DENIED', message: 'effect webhook_emit denied' });
  const store = new Store(), tenant = auth.tenant_id ?? auth.tenant;
  const old = store.get(tenant, key);
  if (old) return old;
  const body = JSON.stringify({ event: p.event, data: p.data ?? null });
  const headers = { 'content-type': 'application/json', 'idempotency-key': key, 'x-correlation-id': trace.correlation_id ?? '' };
  if (p.signing_key) headers['x-signature'] = createHmac('sha256', p.signing_key).update(body).digest('hex');
  const t0 = Date.now();
  for (let attempt = 1; ; attempt++) {
    let status = 0, text = '';
    try {
      const r = await fetch(p.url, { method: 'POST', headers, body, signal: AbortSignal.timeout(1500) });
      status = r.status; text = await r.text();
    } catch (e) { text = String(e?.cause?.code ?? e); }
    if (status >= 200 && status < 300) {
      let reply = text; try { reply = JSON.parse(text); } catch { /* text stays */ }
      const done = envelope('succeeded', { delivered: true, http_status: status, reply }, null, { ms: Date.now() - t0, attempts: attempt });
      store.put(tenant, key, done);
      return done;
    }
    if ((status >= 400 && status < 500 && status !== 429) || attempt === 2) return envelope('failed', null, { code: 'DELIVERY_FAILED', message: `status ${status}: ${text.slice(0, 80)}`, http_status: status }, { ms: Date.now() - t0, attempts: attempt });
    await sleep(100);
  }
}

let buf = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', async (chunk) => {
  buf += chunk;
  let i;
  while ((i = buf.indexOf('\n')) >= 0) {
    const m = JSON.parse(buf.slice(0, i)); buf = buf.slice(i + 1);
    if (m.type === 'handshake') process.stdout.write(JSON.stringify({ type: 'handshake', manifest: { plugin_id: NAME, plugin_version: VERSION, protocol_version: m.protocol_version, exposed_tools: [NAME], capabilities: [] } }) + '\n');
    else {
      const output = await run(m.input);
      process.stderr.write(JSON.stringify({ level: output.error ? 'error' : 'info', msg: 'webhook', correlation_id: m.input?.trace_context?.correlation_id }) + '\n');
      process.stdout.write(JSON.stringify({ type: 'response', request_id: m.request_id, status: 'ok', output }) + '\n', () => process.exit(0));
    }
  }
});
