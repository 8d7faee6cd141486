import type { AgentContext } from './types';

const QUIET_FROM = 22, QUIET_TO = 6;

function hourUtc(at: string): number {
  const d = new Date(at);
  if (Number.isNaN(d.getTime())) throw new TypeError(`schedule-guard: bad time ${at}`);
  return d.getUTCHours();
}

/** failureMode is "fail": an unreadable schedule must not run. */
export function register(ctx: AgentContext): void {
  ctx.bus.on('schedule.fired@v1', (p) => {
    if (typeof p.prompt !== 'string' || p.prompt.trim() === '') throw new Error(`schedule ${p.scheduleId} has no prompt`);
    const h = hourUtc(p.at);
    const quiet = h >= QUIET_FROM || h < QUIET_TO;
    const prefix = quiet ? '[quiet hours: do not notify people] ' : '';
    const once = p.type === 'once' ? ' (This schedule runs only once.)' : '';
    return { ...p, prompt: prefix + p.prompt.trim() + once };
  }, { priority: 50 });
}
