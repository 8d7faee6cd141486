/** Measurements of one call. Further numbers and strings are kept. */
export interface Metrics {
  latency_ms?: number;
  tokens_in?: number;
  tokens_out?: number;
  cost_total?: number;
  provider?: string;
  [name: string]: number | string | undefined;
}

/** What a result may say beside its data, by the names it has on the wire. */
export interface ResultFields {
  metrics?: Metrics;
  nondeterminism?: { is_nondeterministic: boolean; reasons?: readonly string[]; stability?: string };
  /** Text for a person or a model. */
  summary?: string;
  artifacts?: readonly { type: string; path: string; hash?: string }[];
  /** Shown only when debugging. */
  diagnostics?: readonly string[];
  skips?: readonly unknown[];
  citations?: readonly unknown[];
  next_cursor?: string;
  schema_version?: string;
}

/** Data with more to say about it; see {@link result}. */
export class Result<T> {
  readonly data: T;
  readonly fields: ResultFields;

  constructor(data: T, fields: ResultFields) {
    this.data = data;
    this.fields = fields;
  }
}

/** What a handler returns when the data alone do not say it all: `return result(rows, { metrics: { tokens_in: 12 } })`. */
export function result<T>(data: T, fields: ResultFields = {}): Result<T> {
  return new Result(data, fields);
}
