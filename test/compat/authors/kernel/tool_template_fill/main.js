#!/usr/bin/env node
// Template.Fill: {{name}}, {{name|upper}}, {{#if name}}...{{/if}}, {{#each list}}...{{/each}}
const readline = require('readline');

const FILTERS = { upper: (s) => s.toUpperCase(), lower: (s) => s.toLowerCase(), title: (s) => s.replace(/\b\p{L}/gu, (c) => c.toUpperCase()), trim: (s) => s.trim() };

function lookup(data, path) { return path === 'this' ? data.this : path.split('.').reduce((o, k) => (o == null ? undefined : o[k]), data); }

function fill(text, data, used) {
  text = text.replace(/\{\{#each ([\w.]+)\}\}([\s\S]*?)\{\{\/each\}\}/g, (_, path, body) => {
    used.add(path);
    return (lookup(data, path) || []).map((item) => fill(body, { ...data, ...(typeof item === 'object' ? item : {}), this: item }, used)).join('');
  });
  text = text.replace(/\{\{#if ([\w.]+)\}\}([\s\S]*?)\{\{\/if\}\}/g, (_, path, body) => { used.add(path); return lookup(data, path) ? fill(body, data, used) : ''; });
  return text.replace(/\{\{([\w.]+)(?:\|(\w+))?\}\}/g, (whole, path, filter) => {
    const v = lookup(data, path);
    if (v === undefined) throw Object.assign(new Error(`no value for ${path}`), { code: 'MISSING_VALUE' });
    if (filter && !FILTERS[filter]) throw Object.assign(new Error(`unknown filter ${filter}`), { code: 'VALIDATION_ERROR' });
    used.add(path);
    return filter ? FILTERS[filter](String(v)) : String(v);
  });
}

function call(payload) {
  const t = process.hrtime.bigint();
  const done = (result, error = null) => ({ result, metrics: { latency_ms: Number(process.hrtime.bigint() - t) / 1e6 }, error });
  if (!payload || typeof payload.template !== 'string' || typeof payload.data !== 'object' || payload.data === null) return done(null, { code: 'VALIDATION_ERROR', message: 'template (text) and data (object) are required' });
  const used = new Set();
  try { return done({ text: fill(payload.template, payload.data, used), used: [...used].sort() }); } catch (e) { return done(null, { code: e.code || 'INTERNAL', message: e.message }); }
}

const rl = readline.createInterface({ input: process.stdin, terminal: false });
rl.on('line', (line) => {
  const m = JSON.parse(line);
  const reply = m.type === 'handshake'
    ? { type: 'handshake', manifest: { plugin_id: 'Template.Fill', plugin_version: '1.4.1', protocol_version: m.protocol_version, exposed_tools: ['Template.Fill'], capabilities: [] } }
    : { type: 'response', request_id: m.request_id, status: 'ok', output: call((m.input || {}).payload), metadata: {} };
  console.log(JSON.stringify(reply));
  if (m.type !== 'handshake') rl.close();
});
