export const LIMITS: Record<string, number> = { web_search: 2, send_mail: 1, '*': 50 };
export const limitFor = (tool: string): number => LIMITS[tool] ?? LIMITS['*'] ?? Infinity;
