import { headings } from './lib/toc.js';

const tools = {
  'md.toc': ({ markdown, max_level: max = 6 }) => {
    const hs = [...headings(markdown)].filter((h) => h.level <= max);
    return { toc: hs.map((h) => `${'  '.repeat(h.level - 1)}- [${h.text}](#${h.anchor})`).join('\n'), count: hs.length };
  },
  'md.links': ({ markdown }) => {
    const anchors = new Set([...headings(markdown)].map((h) => h.anchor));
    const links = [...markdown.matchAll(/(?<!!)\[([^\]]*)\]\(([^)\s]+)[^)]*\)/g)].map((m) => ({ text: m[1], target: m[2] }));
    return { links, broken: links.filter((l) => l.target.startsWith('#') && !anchors.has(l.target.slice(1))).map((l) => l.target) };
  },
};

let pending = '';
process.stdin.setEncoding('utf8').on('data', (d) => {
  pending += d;
  const lines = pending.split('\n');
  pending = lines.pop();
  for (const l of lines) answer(JSON.parse(l));
});

function answer(m) {
  const say = (o) => process.stdout.write(JSON.stringify(o) + '\n');
  if (m.type === 'handshake') return say({ type: 'handshake', manifest: { plugin_id: 'md.tools', plugin_version: '1.1.0', protocol_version: m.protocol_version, exposed_tools: Object.keys(tools), capabilities: [] } });
  const base = { type: 'response', request_id: m.request_id };
  if (typeof m.input?.markdown !== 'string') return say({ ...base, status: 'error', error: { code: 'invalid_input', message: 'markdown is required' } });
  return say({ ...base, status: 'ok', output: tools[m.tool_name](m.input), metadata: { generated_by: 'md.tools' } });
}
