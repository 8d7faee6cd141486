export interface Pattern { id: string; re: RegExp; reason: string }

export const PATTERNS: Pattern[] = [
  { id: 'rm-root', re: /\brm\s+(-[a-z]*r[a-z]*f|-[a-z]*f[a-z]*r)[a-z]*\s+(\/|~)(\s|$)/, reason: 'recursive delete of / or home' },
  { id: 'pipe-shell', re: /\b(curl|wget)\b[^|]*\|\s*(sudo\s+)?(ba|z)?sh\b/, reason: 'download piped into a shell' },
  { id: 'fork-bomb', re: /:\(\)\s*\{\s*:\|:&\s*\};:/, reason: 'fork bomb' },
  { id: 'chmod-777', re: /\bchmod\s+(-R\s+)?0?777\b/, reason: 'world-writable files' },
];
