type Unit = { dim: string; factor: number; offset?: number };
const UNITS: Record<string, Unit> = {
  m: { dim: 'length', factor: 1 }, km: { dim: 'length', factor: 1000 }, mi: { dim: 'length', factor: 1609.344 }, ft: { dim: 'length', factor: 0.3048 },
  kg: { dim: 'mass', factor: 1 }, lb: { dim: 'mass', factor: 0.45359237 },
  K: { dim: 'temperature', factor: 1, offset: 0 }, C: { dim: 'temperature', factor: 1, offset: 273.15 }, F: { dim: 'temperature', factor: 5 / 9, offset: 459.67 * 5 / 9 },
};

class UnitError extends Error {
  constructor(message: string, public readonly unit?: string) { super(message); this.name = 'UnitError'; }
}

function unit(name: string): Unit {
  const u = UNITS[name];
  if (!u) throw new UnitError(`unknown unit ${name}`, name);
  return u;
}

const round = (x: number, digits = 6): number => Number(x.toFixed(digits));

export function register(ctx: any): void {
  ctx.tools.add({
    name: 'convert_unit',
    schema: { type: 'object', required: ['value', 'from', 'to'], properties: { value: { type: 'number' }, from: { type: 'string' }, to: { type: 'string' } } },
    handler({ value, from, to }: { value: number; from: string; to: string }) {
      const a = unit(from), b = unit(to);
      if (a.dim !== b.dim) throw new UnitError(`cannot convert ${a.dim} to ${b.dim}`);
      return { value: round((value * a.factor + (a.offset ?? 0) - (b.offset ?? 0)) / b.factor), unit: to, dimension: a.dim };
    },
  });
  ctx.tools.add({
    name: 'list_units',
    schema: { type: 'object', properties: { dimension: { type: 'string' } } },
    handler: async (a: { dimension?: string } = {}) => ({ units: Object.keys(UNITS).filter((k) => !a.dimension || UNITS[k]!.dim === a.dimension) }),
  });
}
