// The rubric: five rules, a hundred points. It reads words and sentences of
// English and similar languages; the same text always has the same score.

/** What one rule says of a text. */
export interface Finding {
  rule: "length" | "sentences" | "personal" | "call_to_action" | "readability";
  points: number;
  most: number;
  text: string;
}

const word = /\p{L}[\p{L}\p{M}'’-]*/gu;
const ending = /[.!?]+(?=["'”’)\]]*(?:\s|$))|\n\s*\n/gu;
const asking = /\b(?:could|would|can|may|are|do) (?:you|we|i)\b|\blet me know\b|\bplease\b|\bi would (?:like|welcome|be (?:glad|happy|grateful))\b|\blook forward\b/iu;

/** Scores a text; `names` are what a text for its reader would mention. */
export function score(text: string, names: readonly string[]): { score: number; findings: Finding[] } {
  const words = text.match(word) ?? [];
  const sentences = text.split(ending).filter((part) => /\p{L}/u.test(part)).length;
  const findings = [
    length(words.length),
    rhythm(words.length, sentences),
    personal(text, words, names),
    callToAction(text),
    readability(words, sentences),
  ];
  return { score: findings.reduce((sum, { points }) => sum + points, 0), findings };
}

function length(words: number): Finding {
  const points = words === 0 ? 0 : words >= 80 && words <= 220 ? 25 : words >= 40 && words <= 320 ? 15 : 5;
  const advice = points === 25 ? "a length that is read" : words < 80 ? "80 say more" : "220 are read to the end";
  return { rule: "length", points, most: 25, text: `${words} words: ${advice}` };
}

function rhythm(words: number, sentences: number): Finding {
  if (sentences === 0) return { rule: "sentences", points: 0, most: 15, text: "no sentence" };
  const mean = words / sentences;
  const points = mean >= 8 && mean <= 22 ? 15 : mean >= 5 && mean <= 30 ? 8 : 3;
  const advice = points === 15 ? "easy to follow" : mean < 8 ? "they could be joined" : "they could be split";
  return { rule: "sentences", points, most: 15, text: `${sentences} sentences of ${mean.toFixed(1)} words: ${advice}` };
}

function personal(text: string, words: readonly string[], names: readonly string[]): Finding {
  const folded = text.toLowerCase();
  const mentioned = names.filter((name) => folded.includes(name.toLowerCase()));
  const you = words.filter((w) => /^(?:you|your|yours)$/iu.test(w)).length;
  const points = Math.min(15, 8 * mentioned.length) + Math.min(10, 5 * you);
  const missing = names.filter((name) => !mentioned.includes(name));
  const about = names.length === 0 ? "no names were given" : missing.length === 0 ? "it names everything" : `it does not name ${missing.join(", ")}`;
  return { rule: "personal", points, most: 25, text: `${about}; it says "you" ${you} times` };
}

function callToAction(text: string): Finding {
  const question = /\?(?=["'”’)\]]*(?:\s|$))/u.test(text);
  const request = asking.test(text);
  const points = (question ? 10 : 0) + (request ? 10 : 0);
  const said = [question && "a question", request && "a request"].filter(Boolean).join(" and ");
  return { rule: "call_to_action", points, most: 20, text: said === "" ? "it asks for nothing" : `it has ${said}` };
}

// The reading ease of R. Flesch, "A new readability yardstick" (1948).
function readability(words: readonly string[], sentences: number): Finding {
  if (words.length === 0 || sentences === 0) return { rule: "readability", points: 0, most: 15, text: "nothing to read" };
  const syllables = words.reduce((sum, w) => sum + syllablesOf(w), 0);
  const ease = 206.835 - (1.015 * words.length) / sentences - (84.6 * syllables) / words.length;
  const points = ease >= 50 ? 15 : ease >= 30 ? 10 : 5;
  const grade = points === 15 ? "plain" : points === 10 ? "demanding" : "hard going";
  return { rule: "readability", points, most: 15, text: `a reading ease of ${Math.round(ease)}: ${grade}` };
}

/** An estimate: groups of vowels, without a silent e at the end. */
function syllablesOf(w: string): number {
  const plain = w.toLowerCase().normalize("NFD").replace(/[^a-z]/g, "");
  const groups = plain.replace(/(?<=[a-z]{2})e$/, "").match(/[aeiouy]+/g);
  return Math.max(1, groups?.length ?? 1);
}
