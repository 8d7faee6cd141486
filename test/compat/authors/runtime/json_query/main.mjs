import { createInterface } from 'node:readline';

// a.b[0].c, a[*].name, a[?key=value]
function parse(expr) {
  const out = [];
  const rx = /(?:^|\.)([A-Za-z_][\w-]*)|\[(\d+)\]|\[(\*)\]|\[\?(\w+)=([^\]]*)\]/gy;
  let pos = 0;
  while (pos < expr.length) {
    rx.lastIndex = pos;
    const m = rx.exec(expr);
    if (!m) throw new SyntaxError(`at ${pos}: ${expr.slice(pos, pos + 10)}`);
    if (m[1] !== undefined) out.push((vs) => vs.flatMap((v) => (v !== null && typeof v === 'object' && !Array.isArray(v) && Object.hasOwn(v, m[1]) ? [v[m[1]]] : [])));
    else if (m[2] !== undefined) out.push((vs) => vs.flatMap((v) => (Array.isArray(v) && Number(m[2]) < v.length ? [v[Number(m[2])]] : [])));
    else if (m[3]) out.push((vs) => vs.flatMap((v) => (Array.isArray(v) ? v : [])));
    else out.push((vs) => vs.flatMap((v) => (Array.isArray(v) ? v.filter((x) => String(x?.[m[4]]) === m[5]) : [])));
    pos = rx.lastIndex;
  }
  return out;
}

const handlers = {
  handshake: (m) => ({ type: 'handshake', manifest: { plugin_id: 'jq.lite', plugin_version: '1.0.0', protocol_version: m.protocol_version, exposed_tools: ['json.query'], capabilities: ['tool.execute'] } }),
  request: ({ request_id, input }) => {
    const fail = (code, message) => ({ type: 'response', request_id, status: 'error', error: { code, message } });
    let doc = input?.document;
    if (typeof doc === 'string') { try { doc = JSON.parse(doc); } catch (e) { return fail('invalid_input', `document: ${e.message}`); } }
    if (doc === undefined || typeof input.query !== 'string') return fail('invalid_input', 'document and query are required');
    try {
      const values = parse(input.query).reduce((vs, f) => f(vs), [doc]);
      return { type: 'response', request_id, status: 'ok', output: { values, count: values.length }, metadata: {} };
    } catch (e) { return fail('query_syntax', e.message); }
  },
};

const rl = createInterface({ input: process.stdin, crlfDelay: Infinity });
rl.on('line', (l) => {
  const m = JSON.parse(l);
  process.stdout.write(JSON.stringify(handlers[m.type](m)) + '\n');
  if (m.type === 'request') rl.close();
});
