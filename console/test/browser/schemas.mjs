// Forty input schemas, each with a value that it does not accept as a person fills it in,
// and one that it does. Those of the shipped plugins are the plugins' own.

/** An object schema in which nothing else is allowed. */
const object = (properties, more = {}) => ({ type: "object", properties, additionalProperties: false, ...more });
const text = { type: "string" };

/**
 * name: the operation. wrong and right: inputs. picks: which alternative is chosen at a
 * place, by its title. hidden: places that have no field, so that JSON gives the value.
 */
export const torture = [
  { name: "required", schema: object({ to: text, subject: { type: "string", minLength: 1 } }, { required: ["to", "subject"] }), wrong: { to: "ann" }, right: { to: "ann", subject: "ships" } },
  { name: "lengths", schema: object({ short: { type: "string", minLength: 3, maxLength: 5 }, long: { type: "string", maxLength: 200 } }), wrong: { short: "ab", long: "two\nlines" }, right: { short: "abcd" } },
  { name: "pattern", schema: object({ code: { type: "string", pattern: "^[A-Z]{3}$" } }), wrong: { code: "abc" }, right: { code: "ABC" } },
  { name: "numbers", schema: object({ port: { type: "integer", minimum: 1, maximum: 65535 }, share: { type: "number", exclusiveMinimum: 0, maximum: 1 } }), wrong: { port: 0, share: 2 }, right: { port: 443, share: 0.5 } },
  { name: "no_number", schema: object({ port: { type: "integer" } }), wrong: { port: "many" }, right: { port: 1 } },
  { name: "multiples", schema: object({ step: { type: "integer", multipleOf: 5 } }), wrong: { step: 7 }, right: { step: 10 } },
  { name: "booleans", schema: object({ sure: { type: "boolean" }, agreed: { const: true } }, { required: ["sure", "agreed"] }), wrong: { agreed: true }, right: { sure: false, agreed: true } },
  { name: "enums", schema: object({ size: { enum: ["s", "m", "l"] }, n: { enum: [1, 2, "two"] } }, { required: ["size"] }), wrong: { n: "two" }, right: { size: "m", n: 2 } },
  { name: "labels", schema: object({ level: { type: "string", enum: ["lo", "hi"], "x-ui": { enum_labels: { lo: "Low", hi: "High" }, enum_help: { hi: "Wakes people." } } }, who: text }, { required: ["who"] }), wrong: { level: "hi" }, right: { level: "lo", who: "ann" } },
  { name: "constants", schema: object({ version: { const: "v2" }, body: { type: "string", minLength: 2 } }, { required: ["version", "body"] }), wrong: { version: "v2", body: "x" }, right: { version: "v2", body: "xy" } },
  { name: "formats", schema: object({ day: { type: "string", format: "date" }, at: { type: "string", format: "date-time" }, mail: { type: "string", format: "email" }, host: { type: "string", format: "ipv4" } }), wrong: { day: "2026-11-23", at: "noon", mail: "ann", host: "300.1.1.1" }, right: { day: "2026-11-23", at: "2026-11-23T09:30:00Z", mail: "a@example.com", host: "192.0.2.1" } },
  { name: "addresses", schema: object({ page: { type: "string", format: "uri" }, id: { type: "string", format: "uuid" } }), wrong: { page: "not a page", id: "7" }, right: { page: "https://example.com/a", id: "01a20ad0-ec04-7410-adc8-faaae672c189" } },
  { name: "nested", schema: object({ sender: object({ address: object({ city: { type: "string", minLength: 2 }, zip: { type: "string", pattern: "^\\d{5}$" } }, { required: ["city", "zip"] }) }, { required: ["address"] }) }, { required: ["sender"] }), wrong: { sender: { address: { zip: "12" } } }, right: { sender: { address: { city: "Kiel", zip: "24103" } } } },
  { name: "optional_object", schema: object({ proxy: object({ host: text, port: { type: "integer", maximum: 65535 } }, { required: ["host"] }) }), wrong: { proxy: { port: 70000 } }, right: {} },
  { name: "lists", schema: object({ tags: { type: "array", items: { type: "string", minLength: 2 }, minItems: 2, uniqueItems: true } }, { required: ["tags"] }), wrong: { tags: ["ab", "ab", "c"] }, right: { tags: ["ab", "cd"] } },
  { name: "lists_of_objects", schema: object({ lines: { type: "array", items: object({ sku: { type: "string", pattern: "^[a-z]+$" }, n: { type: "integer", minimum: 1 } }, { required: ["sku", "n"] }) } }), wrong: { lines: [{ sku: "bolt", n: 0 }, { sku: "NUT", n: 4 }, { sku: "nail" }] }, right: { lines: [{ sku: "bolt", n: 3 }] } },
  { name: "lists_in_lists", schema: object({ grid: { type: "array", items: { type: "array", items: { type: "integer", maximum: 9 } } } }), wrong: { grid: [[1, 2], [3, 40]] }, right: { grid: [[1], [2, 3]] } },
  { name: "tuples", schema: object({ pair: { type: "array", prefixItems: [{ type: "integer" }, text], items: false, minItems: 2 } }, { required: ["pair"] }), wrong: { pair: ["one", "two"] }, right: { pair: [1, "two"] } },
  { name: "alternatives", schema: object({ shape: { oneOf: [{ title: "Circle", ...object({ r: { type: "number", minimum: 0 } }, { required: ["r"] }) }, { title: "Box", ...object({ w: { type: "number" }, h: { type: "number" } }, { required: ["w", "h"] }) }] } }, { required: ["shape"] }), picks: { "/shape": "Box" }, wrong: { shape: { w: 4 } }, right: { shape: { w: 4, h: 3 } } },
  { name: "by_kind", schema: object({ to: { oneOf: [object({ kind: { const: "mail" }, address: { type: "string", format: "email" } }, { required: ["kind", "address"] }), object({ kind: { const: "post" }, street: { type: "string", minLength: 3 } }, { required: ["kind", "street"] })] } }, { required: ["to"] }), picks: { "/to": "post" }, wrong: { to: { kind: "post", street: "x" } }, right: { to: { kind: "mail", address: "a@example.com" } } },
  { name: "any_type", schema: object({ value: { anyOf: [{ type: "string", maxLength: 3 }, { type: "integer", minimum: 10 }] } }), picks: { "/value": "Whole number" }, wrong: { value: 5 }, right: { value: "abc" } },
  { name: "types", schema: object({ limit: { type: ["integer", "null"], minimum: 1 }, id: { type: ["string", "integer"], minLength: 2 } }), picks: { "/id": "Text" }, wrong: { limit: 0, id: "x" }, right: { limit: null, id: 7 } },
  { name: "recursive", schema: { $defs: { node: object({ name: { type: "string", minLength: 1 }, children: { type: "array", items: { $ref: "#/$defs/node" } } }, { required: ["name"] }) }, ...object({ root: { $ref: "#/$defs/node" } }, { required: ["root"] }) }, wrong: { root: { name: "a", children: [{ name: "b", children: [{}] }, {}] } }, right: { root: { name: "a", children: [{ name: "b" }] } } },
  { name: "references", schema: { $defs: { money: { title: "Money", ...object({ amount: { type: "string", pattern: "^\\d+\\.\\d\\d$" }, currency: { $ref: "#/$defs/cur" } }, { required: ["amount", "currency"] }) }, cur: { enum: ["EUR", "USD"] } }, ...object({ price: { $ref: "#/$defs/money" } }, { required: ["price"] }) }, wrong: { price: { amount: "12", currency: "EUR" } }, right: { price: { amount: "12.00", currency: "USD" } } },
  { name: "joined", schema: { type: "object", allOf: [{ properties: { a: { type: "string", minLength: 2 } }, required: ["a"] }, { properties: { b: { type: "integer" } }, required: ["b"] }] }, wrong: { a: "x" }, right: { a: "xy", b: 1 } },
  { name: "together", schema: object({ card: text, cvc: text, name: text }, { dependentRequired: { card: ["cvc", "name"] } }), wrong: { card: "4111", name: "ann" }, right: { card: "4111", cvc: "1", name: "ann" } },
  { name: "conditions", schema: { ...object({ kind: { enum: ["a", "b"] }, extra: text }, { required: ["kind"] }), if: { properties: { kind: { const: "b" } } }, then: { required: ["extra"] } }, wrong: { kind: "b" }, right: { kind: "b", extra: "x" } },
  { name: "named_members", schema: { type: "object", properties: { headers: { type: "object", patternProperties: { "^X-": { type: "string", minLength: 2 } }, additionalProperties: false } } }, wrong: { headers: { "X-A": "1" } }, right: { headers: { "X-A": "12" } } },
  { name: "open_members", schema: { type: "object", properties: { env: { type: "object", additionalProperties: { type: "string", pattern: "^[a-z]*$" } } } }, wrong: { env: { HOME: "Root", "A/B~C": "X" } }, right: { env: { HOME: "root" } } },
  { name: "open_values", schema: object({ any: {}, list: { type: "array" } }, { required: ["any"] }), wrong: { list: ["x"] }, right: { any: { a: [1, null] }, list: [] } },
  { name: "show_when", schema: object({ auth: { enum: ["none", "basic", "token"] }, user: { type: "string", minLength: 2, "x-ui": { show_when: { field: "auth", equals: "basic" } } }, token: { type: "string", minLength: 4, "x-ui": { show_when: { field: "auth", in: ["token", "basic"] } } }, scope: { type: "string", minLength: 2, "x-ui": { show_when: { auth: "token" } } } }, { required: ["auth"] }), wrong: { auth: "token", token: "abc", scope: "x" }, right: { auth: "basic", user: "ann" } },
  { name: "hidden", schema: object({ seen: text, trace: { type: "string", minLength: 4, "x-ui": { hidden: true } } }, { required: ["trace"] }), wrong: { seen: "a" }, right: { trace: "0123" } },
  { name: "long_numbers", schema: object({ id: { type: "integer", maximum: 10 } }), exact: "9007199254740993", wrong: { id: 9007199254740993n }, right: { id: 5 } },
  { name: "odd_names", schema: object({ "a/b": { type: "integer" }, "c~d": { type: "object", properties: { "é ": { type: "integer" } }, required: ["é "] } }, { required: ["a/b"] }), wrong: { "a/b": "x", "c~d": { "é ": "y" } }, right: { "a/b": 1 } },
];

/**
 * Operations that ship with Mortise. plugin: its directory below plugins/, empty for one that
 * is built in. own: its own code checks the input, by the rules of its contract.
 */
export const shipped = [
  { name: "pattern_extractor/pattern_extractor", plugin: "", wrong: { depth: 9, similarity: 2, order: "rare" } },
  { name: "event_source_profiler/event_source_profiler", plugin: "", own: true, wrong: { limit: 501, year: 1 } },
  { name: "firewall_log_aggregator/firewall_log_aggregator", plugin: "", own: true, wrong: { scan_threshold: 2, write_rows: true, max_rows: 0 } },
  { name: "pcap_metadata_summary/pcap_metadata_summary", plugin: "", own: true, wrong: { limit: "many", write_table: false } },
  { name: "threat_intel_ingester/threat_intel_ingester", plugin: "", own: true, wrong: { types: ["ipv4", "cve"], limit: 2001 } },
  { name: "Template.Fill/Template.Fill", plugin: "outreach/template_fill", wrong: { template: "Dear {name}", values: { "1st": "Ann" } }, picks: { "/values/1st": "Text" } },
  { name: "Text.Score/Text.Score", plugin: "outreach/text_score", wrong: { text: "a", names: ["", "Kiel"] } },
  { name: "Gmail.Send/Gmail.Send", plugin: "outreach/gmail_send", picks: { "/to": "List" }, wrong: { from: "a", to: ["b"], subject: "s" } },
  { name: "Apply.EmailDraft/Apply.EmailDraft", plugin: "outreach/apply_email_draft", wrong: { id: "-", draft: { subject: "s" } } },
  { name: "ExternalSystem.WriteOutcome/ExternalSystem.WriteOutcome", plugin: "outreach/write_outcome", wrong: { url: "ftp://x", outcome: { status: "failed" } } },
];
