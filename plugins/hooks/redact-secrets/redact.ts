// What looks like a secret, in text and in JSON.

const patterns: [name: string, pattern: RegExp][] = [
  ["private key", /-----BEGIN [A-Z ]*PRIVATE KEY-----(?:(?!-----END )[\s\S]){0,16000}(?:-----END [A-Z ]*PRIVATE KEY-----)?/g],
  ["AWS key", /(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])/g],
  ["GitHub token", /(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{36,255}/g],
  ["Slack token", /(?<![A-Za-z0-9])xox[abprs]-[A-Za-z0-9-]{10,250}/g],
  ["API key", /(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{20,200}/g],
  ["JSON web token", /(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,1000}/g],
  ["password", /(?:password|passwd|secret)\\{0,3}["']?\s{0,3}[:=]\s{0,3}\\{0,3}["']?[^\s"'\\]{6,200}/gi],
];

const secretName = /(?:password|passwd|secret)$/i;

function plain(text: string): string {
  for (const [name, pattern] of patterns) text = text.replace(pattern, `[${name} removed]`);
  return text;
}

// What \u stands for, as far as secrets are written with it.
function spelled(text: string): string {
  return text.replace(/\\+u00([2-7][0-9a-fA-F])/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
}

// redactText returns a text without secrets. One that is JSON is looked at as what
// it stands for: there a secret may be escaped, or a JSON text inside of another.
export function redactText(text: string, depth = 0): string {
  const first = text.trimStart()[0];
  if (depth < 8 && (first === "{" || first === "[" || first === '"')) {
    let value;
    try {
      value = JSON.parse(text);
    } catch {
      value = undefined; // cut short, or prose
    }
    if (value !== undefined) {
      const clean = redact(value, depth + 1);
      if (clean !== value) text = JSON.stringify(clean);
      return plain(text);
    }
  }
  const clean = plain(text);
  if (!clean.includes("\\")) return clean;
  const meant = spelled(clean);
  const cleaned = plain(meant);
  return cleaned === meant ? clean : cleaned;
}

// redact returns a value without secrets: itself where it has none.
export function redact(value: any, depth = 0): any {
  if (typeof value === "string") return redactText(value, depth);
  if (typeof value !== "object" || value === null) return value;
  if (depth > 64) throw new Error("the value is nested too deep to be looked at");
  if (Array.isArray(value)) {
    const list = value.map((v) => redact(v, depth + 1));
    return list.every((v, n) => v === value[n]) ? value : list;
  }
  let changed = false;
  const clean = {};
  for (const [name, inside] of Object.entries(value)) {
    const key = plain(name);
    const is = secretName.test(name) && typeof inside === "string" && inside.length >= 6 ? "[password removed]" : redact(inside, depth + 1);
    changed = changed || key !== name || is !== inside;
    Object.defineProperty(clean, key, { value: is, enumerable: true, configurable: true, writable: true }); // __proto__ too
  }
  return changed ? clean : value;
}
