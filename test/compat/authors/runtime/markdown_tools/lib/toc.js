export const slug = (s, seen) => {
  const base = s.toLowerCase().replace(/[^\p{L}\p{N}\s-]/gu, '').trim().replace(/\s+/g, '-');
  const n = seen.get(base) ?? 0;
  seen.set(base, n + 1);
  return n ? `${base}-${n}` : base;
};

export function* headings(md) {
  let fence = null;
  const seen = new Map();
  for (const [i, line] of md.split(/\r?\n/).entries()) {
    const f = /^\s*(```+|~~~+)/.exec(line);
    if (f) { fence = fence === null ? f[1][0] : fence === f[1][0] ? null : fence; continue; }
    if (fence) continue;
    const h = /^(#{1,6})\s+(.+?)\s*#*$/.exec(line);
    if (h) yield { level: h[1].length, text: h[2], line: i + 1, anchor: slug(h[2], seen) };
  }
}
