// Inverted index over memory.upsert events. Deleted memories are not seen (there is no event for them).
const STOP = new Set('the a an of to and or in is are for on with'.split(' '));
const words = (t: string): string[] => t.toLowerCase().match(/[\p{L}\p{N}]+/gu)?.filter((w) => !STOP.has(w)) ?? [];

export function register({ bus, tools, logger }: any): void {
  const docs = new Map<string, string>();
  const index = new Map<string, Set<string>>();

  const remove = (key: string) => {
    for (const w of new Set(words(docs.get(key) ?? ''))) index.get(w)?.delete(key);
    docs.delete(key);
  };

  bus.on('memory.upsert@v1', async ({ key, content }: { key: string; content: string }) => {
    if (docs.has(key)) remove(key);
    docs.set(key, content);
    for (const w of words(content)) {
      let set = index.get(w);
      if (!set) index.set(w, (set = new Set()));
      set.add(key);
    }
    logger?.debug?.(`memory-index: ${docs.size} entries`);
  });

  tools.add({
    name: 'memory_search',
    schema: { type: 'object', required: ['query'], properties: { query: { type: 'string', minLength: 1 }, limit: { type: 'integer', minimum: 1 } } },
    handler: async ({ query, limit = 5 }: { query: string; limit?: number }) => {
      const scores = new Map<string, number>();
      for (const w of words(query)) for (const k of index.get(w) ?? []) scores.set(k, (scores.get(k) ?? 0) + 1);
      const hits = [...scores].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).slice(0, limit)
        .map(([key, score]) => ({ key, score, excerpt: (docs.get(key) ?? '').slice(0, 80) }));
      return { hits, indexed: docs.size };
    },
  });
}
