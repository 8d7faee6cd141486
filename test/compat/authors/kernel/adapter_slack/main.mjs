// Slack adapter: mentions become Support.QA.Answer; outcomes become a write request.
import { createInterface } from 'node:readline/promises';
import { createHmac, timingSafeEqual } from 'node:crypto';

const NAME = 'Slack.Adapter';
const TOOLS = [NAME, 'map_external_event_to_intent', 'map_outcome_to_operator_request'];
const err = (code, message) => Object.assign(new Error(message), { code });

function verify(ev, secret) {
  if (!secret) return;
  const base = `v0:${ev.timestamp}:${ev.raw_body}`;
  const want = Buffer.from('v0=' + createHmac('sha256', secret).update(base).digest('hex'));
  const got = Buffer.from(String(ev.signature ?? ''));
  if (want.length !== got.length || !timingSafeEqual(want, got)) throw err('POLICY_DENIED', 'bad signature');
}

function inbound({ external_event: ev, workspace_map: map = {}, signing_secret: secret }) {
  if (!ev || ev.type !== 'app_mention' || typeof ev.text !== 'string') throw err('VALIDATION_ERROR', 'only app_mention events with text');
  verify(ev, secret);
  const ws = map[ev.team];
  if (!ws) throw err('POLICY_DENIED', `workspace ${ev.team} is not connected`);
  const question = ev.text.replace(/<@[A-Z0-9]+>/g, '').replace(/<(https?:[^|>]+)(\|[^>]*)?>/g, '$1').trim();
  if (!question) throw err('VALIDATION_ERROR', 'empty question');
  return {
    intent: { type: 'Support.QA.Answer', payload: { question, thread: ev.thread_ts ?? ev.ts, channel: ev.channel } },
    auth_context: { tenant_id: ws.tenant_id, principal: { type: 'slack_user', id: `${ev.team}:${ev.user}` }, scopes: ['qa:ask'] },
    trace_context: { correlation_id: `slack-${ev.ts}` },
  };
}

const outbound = ({ outcome }) => {
  if (!outcome?.schema_version || !outcome.channel) throw err('VALIDATION_ERROR', 'outcome.schema_version and channel');
  const blocks = (outcome.answer ?? '').match(/[\s\S]{1,3000}/g) ?? [];
  return { operator: 'ExternalSystem.WriteOutcome', payload: { system: 'slack', channel: outcome.channel, thread: outcome.thread, blocks: blocks.map((text) => ({ type: 'section', text })) }, policy_tags: ['external_send'] };
};

const rl = createInterface({ input: process.stdin });
for await (const line of rl) {
  if (!line.trim()) continue;
  const m = JSON.parse(line);
  let out;
  if (m.type === 'handshake') out = { type: 'handshake', manifest: { plugin_id: NAME, plugin_version: '0.8.0', protocol_version: m.protocol_version, exposed_tools: TOOLS, capabilities: [] } };
  else {
    try {
      const input = m.input?.payload ?? m.input ?? {};
      const out2 = m.tool_name.endsWith('operator_request') || input.outcome ? { operator_request: outbound(input) } : { kernel_submit_request: inbound(input) };
      out = { type: 'response', request_id: m.request_id, status: 'ok', output: out2, metadata: {} };
    } catch (e) { out = { type: 'response', request_id: m.request_id, status: 'error', error: { code: e.code ?? 'INTERNAL', message: e.message } }; }
  }
  process.stdout.write(JSON.stringify(out) + '\n');
  if (m.type !== 'handshake') { rl.close(); break; }
}
