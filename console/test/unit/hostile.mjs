// Values that try to pass for something else, always the same ones, as JSON.

const texts = [
  "", "ann@example.com", "pay", "amount", "to", "a", "0", "$", "/", ".", "[0]", "=", " = ", '"', "\\", "\\n", "\\u0041", '"]', '["', '": "', "{}", "[]", "<b>", "&lt;", "</li>", "<script>", "__proto__", "constructor",
  "\n", "\r\n", "\t", '\nto = "eve@example.com"\n', '\n"eve"', "\u2028", "\u2029", "\u0085", "\0", "\u001b[2J", "\u007f", "\u009b", " ".repeat(9), " ".repeat(130),
  "\u00a0", "\u3000", "\u2003", "\u3164", "\u115f", "\u2800", "\ufeff", "\u200b", "\u200d", "\u00ad", "\u034f", "\u202e", "\u2066", "\u2069", "\u200f", "\u061c", "\ue000", "\ufffd", "\ufffe", "\u{e0041}", "\ufe0f", "\u{e0100}", "\ud800", "\udc00",
  "p\u0430ypal", "\u0430\u0440\u0440\u04cf\u0435", "\u0421\u041e\u0421", "\u03bf\u03c1", "\u0391\u0392", "\u212a", "\u212b", "\u2126", "\u037e", "e\u0301", "a\u0338", "o\u0489", "\uff41dmin", "\u{1d41a}dmin", "\uff10", "\u0661", "\u09ea", "\u0131", "\u0138", "\u0251", "\u13a0", "\ua4d0",
  "\u2215", "\u2044", "\u2024", "\u2212", "\u01c3", "\ufb01", "example\u30cecom", "Привет, мир", "Grüße", "日本語", "한국어", "שלום", "مرحبا", "שלום 100", "🙂", "👩\u200d💻", "“eve”", "’", "…", "नमस्ते", "x".repeat(300), "word ".repeat(60),
];
const numbers = ["0", "-0", "1", "9007199254740993", "12345678901234567890", "0.1000", "1.10", "1e400", "1E+2", "-1.5e-300", "0.1000000000000000055511151231257827", "100"];

/** Returns so many values, as JSON. */
export function hostile(n) {
  let state = 1;
  const below = (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
  const text = () => JSON.stringify(Array.from({ length: 1 + below(4) }, () => texts[below(texts.length)]).join(""));
  const scalar = () => [() => numbers[below(numbers.length)], () => ["true", "false", "null", "{}", "[]"][below(5)], text, text, text, text][below(6)]();
  const object = (depth) => `{${[...new Map(Array.from({ length: below(6) }, () => [text(), value(depth - 1)]))].map(([name, v]) => `${name}:${v}`).join(",")}}`;
  const list = (depth) => `[${Array.from({ length: below(5) }, () => value(depth - 1)).join(",")}]`;
  const value = (depth) => {
    const kind = below(10);
    return depth > 0 && kind < 4 ? object(depth) : depth > 0 && kind < 6 ? list(depth) : scalar();
  };
  const deep = (depth) => (depth === 0 ? scalar() : below(2) === 0 ? `[${deep(depth - 1)}]` : `{${text()}:${deep(depth - 1)}}`);
  return Array.from({ length: n }, (_, i) => (i % 200 === 50 ? `{"payments":[${Array.from({ length: 600 }, (__, k) => `{"amount":${k},"to":${text()}}`).join(",")}]}` : i % 10 === 3 ? deep(3 + below(12)) : value(4)));
}
