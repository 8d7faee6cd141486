'use strict';
const http = require('node:http'), https = require('node:https'), readline = require('node:readline');
const MAX = 256 * 1024;

function fetchOnce(url, method, headers, body, ms) {
  return new Promise((resolve, reject) => {
    const req = (url.protocol === 'https:' ? https : http).request(url, { method, headers, timeout: ms, agent: false }, (res) => {
      const parts = []; let size = 0;
      res.on('data', (d) => { size += d.length; if (size > MAX) { req.destroy(Object.assign(new Error('body too large'), { plugin: 'too_large' })); } else parts.push(d); });
      res.on('end', () => resolve({ status: res.statusCode, headers: res.headers, text: Buffer.concat(parts).toString('utf8') }));
      res.on('error', reject);
    });
    req.on('timeout', () => req.destroy(Object.assign(new Error('no answer in time'), { plugin: 'upstream_timeout' })));
    req.on('error', reject);
    req.end(body);
  });
}

async function run(input) {
  let url;
  try { url = new URL(input.url); } catch { throw Object.assign(new Error('url is not valid'), { plugin: 'invalid_input' }); }
  if (!/^https?:$/.test(url.protocol)) throw Object.assign(new Error(`scheme ${url.protocol} refused`), { plugin: 'invalid_input' });
  const tries = Math.min(3, (input.retries ?? 1) + 1);
  for (let i = 1; ; i++) {
    const r = await fetchOnce(url, input.method ?? 'GET', { accept: '*/*', connection: 'close', ...(input.headers ?? {}) }, input.body, 1200);
    if (r.status >= 500 && i < tries) { await new Promise((f) => setTimeout(f, 50 * i)); continue; }
    if (r.status >= 400) throw Object.assign(new Error(`HTTP ${r.status}`), { plugin: r.status === 404 ? 'not_found' : 'http_error' });
    let json; if (/json/.test(r.headers['content-type'] ?? '')) json = JSON.parse(r.text);
    return { status: r.status, attempts: i, content_type: r.headers['content-type'] ?? null, ...(json === undefined ? { text: r.text } : { json }) };
  }
}

readline.createInterface({ input: process.stdin }).on('line', async (line) => {
  const m = JSON.parse(line);
  if (m.type === 'handshake') {
    return console.log(JSON.stringify({ type: 'handshake', manifest: { plugin_id: 'net.fetch', plugin_version: '0.9.0', protocol_version: 'rterm.plugin.v1', exposed_tools: ['url.fetch'], capabilities: ['network.http'] } }));
  }
  let r;
  try { r = { status: 'ok', output: await run(m.input ?? {}), metadata: {} }; } catch (e) { r = { status: 'error', error: { code: e.plugin ?? 'network_error', message: e.message } }; }
  process.stdout.write(JSON.stringify({ type: 'response', request_id: m.request_id, ...r }) + '\n', () => process.exit(r.status === 'ok' ? 0 : 1));
});
