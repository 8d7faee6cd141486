// Adds house rules and drops sections that are not wanted. Mutates the payload in place and returns nothing.
const RULES = [
  'Answer in British English.',
  'Quote the source of each figure.',
  'Never promise a delivery date.',
];
const DROP = new Set(['marketing', 'easter-egg']);

export function register(ctx: any) {
  ctx.bus.on('prompt.assemble@v1', (payload: any) => {
    const keep = payload.sections.filter((s: any) => !DROP.has(s.key) && s.content.trim() !== '');
    payload.sections.length = 0;
    payload.sections.push(...keep);
    const mine = payload.sections.find((s: any) => s.key === 'house-rules');
    const content = RULES.map((r, i) => `${i + 1}. ${r}`).join('\n');
    if (mine) mine.content = content;
    else payload.sections.push({ key: 'house-rules', content });
  });
}
