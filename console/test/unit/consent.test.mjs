// The view of consent: every value is in the visible text, or Approve is disabled and the page
// says what is not shown.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { components } from "./unit.mjs";
import { hostile } from "./hostile.mjs";
import { visible } from "./visible.mjs";

const { consent: render, consents, json } = await components();
const { changes, leaves, pieces, quote } = consents;
const { parse, stringify } = json;
const vectors = JSON.parse(readFileSync(new URL("../../../internal/base/consent/testdata/lines.json", import.meta.url), "utf8"));

test("the lines are those of the command line", () => {
  assert.ok(vectors.length > 60, `${vectors.length} values`);
  for (const { json: text, lines } of vectors) {
    // a JavaScript object has members that are numbers before the others
    assert.deepEqual(leaves(parse(text)).map((l) => `${l.path} = ${l.text}`).sort(), [...lines].sort(), text);
  }
});

/** Puts a leaf at its path into a value, as someone does who reads the page. */
function put(into, path, text) {
  if (path === "$" && into === undefined) return parse(text);
  if (path === "") {
    assert.equal(into, undefined, "a leaf is there twice");
    return parse(text);
  }
  const [head] = /^(?:\.?[A-Za-z_][\w-]*|\[\d+\]|\["(?:[^"\\]|\\.)*"\])/s.exec(path) ?? assert.fail(`no path: ${path}`);
  const rest = path.slice(head.length);
  if (/^\[\d/.test(head)) {
    const list = into ?? [];
    const i = Number(head.slice(1, -1));
    assert.ok(Array.isArray(list) && i <= list.length, `item ${i} does not follow`);
    list[i] = put(list[i], rest, text);
    return list;
  }
  const name = head.startsWith("[") ? JSON.parse(head)[0] : head.replace(/^\./, "");
  const object = into ?? Object.create(null);
  object[name] = put(object[name], rest, text);
  return object;
}

/** Reads a line of the page: its path, and its value of which a text may stand in several pieces. */
function read(line) {
  const [, path, value] = /^((?:[^ "\[]|\[\d+\]|\["(?:[^"\\]|\\.)*"\])+) = (.*)$/su.exec(line) ?? assert.fail(`no leaf: ${line}`);
  const texts = value.match(/"(?:[^"\\]|\\.)*"/gs);
  if (texts === null) return [path, value];
  assert.equal(texts.join(""), value, `more than a text: ${line}`);
  return [path, `"${texts.map((t) => t.slice(1, -1)).join("")}"`];
}

// What no line may have: it is not seen, it turns text around, or it is another letter.
const misleads = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Me}\p{Variation_Selector}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}|(?![0-9])\p{Nd}/u;
const words = /(?:(?![\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}])[\p{L}\p{Mn}])+/gu;
const scripts = [/\p{sc=Latin}/u, /\p{sc=Cyrillic}/u, /\p{sc=Greek}/u];

function asked(input, more = {}) {
  const q = { id: "a", state: "open", subject_kind: "call", subject: "c", operation: "mail/send", requester: "ann", why: "", binding: "b", changed: false, input, ...more };
  return { q, seen: q, changed: false, read() {}, open: true, busy: "", decide() {} };
}

/** Returns the sections of leaves that a page shows, and whether Approve can be pressed. */
function look(props) {
  const page = visible(render(props));
  const approve = page.buttons.find((b) => b.text === "Approve");
  return { ...page, may: approve !== undefined && !approve.disabled };
}

test("every leaf of 1000 hostile inputs is in the visible text, or Approve is disabled", () => {
  let complete = 0;
  for (const [i, raw] of hostile(1000).entries()) {
    const input = parse(raw);
    const { lines, may, text } = look(asked(input, i % 3 === 0 ? { preview: input } : {}));
    if (!may) {
      assert.match(text, /values are not shown yet/, raw);
      continue;
    }
    complete++;
    const count = leaves(input).length;
    for (let at = 0; at < lines.length; at += count) {
      let back;
      for (const line of lines.slice(at, at + count)) {
        const bare = line.replace(/\\u[0-9a-f]{4}|\\./gs, " "); // escapes say what they are
        assert.doesNotMatch(bare, misleads, line);
        assert.equal(bare.normalize("NFKC"), bare, line);
        for (const [word] of bare.matchAll(words)) assert.ok(scripts.filter((script) => script.test(word)).length < 2, line);
        back = put(back, ...read(line));
      }
      assert.equal(stringify(back ?? null), stringify(input), raw.slice(0, 300));
    }
    assert.equal(lines.length, count * (i % 3 === 0 ? 2 : 1));
  }
  assert.ok(complete > 950, `${complete} of 1000 are shown at once`);
});

test("what is too long for the page keeps Approve disabled, and is counted", () => {
  const long = Array.from({ length: 600 }, (_, i) => ({ amount: i, text: "x".repeat(500) }));
  for (const props of [asked({ long }), asked({}, { preview: { long } }), asked(undefined, { subject_kind: "plan", steps: [1, 2].map((n) => ({ step_id: `s${n}`, operation: "mail/send", version: "1", needs: [], gate: "approval", why: "", input: { long } })) })]) {
    const { lines, may, text } = look(props);
    const all = props.q.steps === undefined ? 1200 : 2400;
    assert.equal(may, false);
    assert.ok(text.includes(`${(props.q.preview ? all + 1 : all) - lines.length} of ${props.q.preview ? all + 1 : all} values are not shown yet`), text.slice(-600));
  }
  assert.equal(look(asked({ deep: { deeper: { deepest: { recipient: "eve" } } } })).lines[0], 'deep.deeper.deepest.recipient = "eve"');
});

test("each step of a plan is shown, and its input with it", () => {
  const steps = [1, 2].map((n) => ({ step_id: `s${n}`, operation: "mail/send", version: "1", needs: [], gate: "approval", why: "", input: { to: `p${n}` } }));
  const { lines, may } = look(asked(undefined, { subject_kind: "plan", steps }));
  assert.deepEqual(lines, ['to = "p1"', 'to = "p2"']);
  assert.equal(may, true);
});

test("a request that changed, or a plugin that did, cannot be approved, and the page says so", () => {
  assert.equal(look({ ...asked({ a: 1 }), changed: true }).may, false);
  assert.match(look({ ...asked({ a: 1 }), changed: true }).text, /read the changes/);
  assert.equal(look(asked({ a: 1 }, { changed: true })).may, false);
  assert.equal(look(asked({ a: 1 })).may, true);
  const barred = look(asked({ a: 1 }, { standing: { may_not_approve: { code: "approval_self", detail: "" } } }));
  assert.equal(barred.buttons.some((b) => b.text === "Approve"), false);
});

test("all of 600 changes are found, and those that are not shown are counted", () => {
  const payments = (add) => ({ payments: Array.from({ length: 600 }, (_, i) => ({ to: "ann", amount: i + add })) });
  assert.equal(changes(payments(0), payments(1)).length, 600);
  const { text, lines, may } = look(asked(payments(1), { before: { call_id: "c", version: "1", requester: "ann", decided_by: "bob", decided_at: "", input: payments(0) } }));
  assert.match(text, /100 of 600 changes are not shown/);
  assert.ok(lines.includes("payments[599].amount = 600"), "and the input has them all");
  assert.equal(may, true);
  const changed = { ...asked(payments(1)), changed: true, seen: asked(payments(0)).q };
  assert.match(look(changed).text, /100 of 600 changes are not shown/);
});

test("differences are leaves, in words that can be read back", () => {
  assert.deepEqual(changes({ a: 1, b: [1, 2], "c/d": 1 }, { a: 2, b: [1], e: null }), [
    { path: "a", before: "1", after: "2" }, { path: "b[1]", before: "2", after: undefined }, { path: '["c/d"]', before: "1", after: undefined }, { path: "e", before: undefined, after: "null" },
  ]);
  assert.deepEqual(changes({ a: [{}] }, { a: [{}] }), []);
  assert.deepEqual(changes(parse("9007199254740993"), parse("9007199254740992")).length, 1);
});

test("a line break does not begin a line of another value", () => {
  const lines = pieces(quote('hello\nto = "eve"\n')).map((line) => line.map((p) => p.text).join(""));
  assert.deepEqual(lines, ['"hello\\n"', '"to = \\"eve\\"\\n"']);
});
