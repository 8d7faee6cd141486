// FollowUp.Suggest: structured next steps from an outreach history.
import readline from 'node:readline';

const ID = 'FollowUp.Suggest', VERSION = '1.1.0';
const send = (o) => process.stdout.write(JSON.stringify(o) + '\n');
const DAY = 86400000;

function needs(ctx) {
  return ['outreach.history', 'clock.now'].filter((k) => k.split('.').reduce((o, p) => o?.[p], ctx) === undefined);
}

export function suggest({ intent, context = {}, constraints = {}, tool_registry: reg = [] }) {
  const base = { agent_name: ID, agent_version: VERSION };
  const missing = needs(context);
  if (missing.length) return { ...base, kind: 'next_step_suggestions', confidence: 0, rationale: { short: 'context missing', signals: [] }, suggestions: [], error: { code: 'NEEDS_CONTEXT', message: missing.join(', ') } };
  const now = Date.parse(context.clock.now), wait = constraints.wait_days ?? 7;
  const suggestions = [], signals = [`intent_type:${intent?.type}`];
  for (const h of context.outreach.history) {
    const days = Math.floor((now - Date.parse(h.sent_at)) / DAY);
    if (h.replied) suggestions.push({ type: 'followup', text: `Answer ${h.to}.`, ref: h.id, urgency: 'high' });
    else if (days >= wait) suggestions.push({ type: 'followup', text: `Remind ${h.to} (sent ${days} days ago).`, ref: h.id, urgency: days >= 2 * wait ? 'high' : 'normal' });
    signals.push(`outreach.history[${h.id}]:${h.replied ? 'replied' : days + 'd'}`);
  }
  const usable = reg.map((r) => r.name ?? r);
  return { ...base, kind: 'next_step_suggestions', confidence: suggestions.length ? 0.85 : 0.6, rationale: { short: `${suggestions.length} follow-ups`, signals }, suggestions,
    required_actions: usable.includes('Text.Score') ? [{ operator: 'Text.Score', payload: { text: suggestions.map((s) => s.text).join(' ') || '-' }, policy_tags: ['read_only'] }] : [] };
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const m = JSON.parse(line);
  if (m.type === 'handshake') send({ type: 'handshake', manifest: { plugin_id: ID, plugin_version: VERSION, protocol_version: 'rterm.plugin.v1', exposed_tools: [ID], capabilities: [] } });
  else if (m.type === 'request') { send({ type: 'response', request_id: m.request_id, status: 'ok', output: suggest(m.input ?? {}) }); break; }
}
