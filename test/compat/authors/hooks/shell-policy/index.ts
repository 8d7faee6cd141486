import { PATTERNS } from './patterns.js';

type Decision = { allow: boolean; reason?: string };
interface ToolBefore { agentId: string; sessionId?: string; toolName: string; toolCallId: string; args: Record<string, unknown> }

const SHELL_TOOLS = new Set(['exec', 'bash', 'shell', 'run_command']);

function commandOf(args: Record<string, unknown>): string {
  const c = args.command ?? args.cmd ?? args.script;
  return Array.isArray(c) ? c.join(' ') : typeof c === 'string' ? c : '';
}

export function register(ctx: any): void {
  ctx.bus.on('tool.before@v1', async (p: ToolBefore): Promise<Decision> => {
    if (!SHELL_TOOLS.has(p.toolName)) return { allow: true };
    const cmd = commandOf(p.args ?? {});
    const hit = PATTERNS.find((x) => x.re.test(cmd));
    if (!hit) return { allow: true };
    ctx.logger?.warn?.(`blocked ${p.toolName} (${hit.id})`);
    return { allow: false, reason: `shell-policy/${hit.id}: ${hit.reason}` };
  }, { priority: 10 });
}
