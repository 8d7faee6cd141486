// How often a page looks again is counted by events, with a clock of the test's own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./unit.mjs";

const { Refresh } = await load("refresh.ts");

/** A clock that a test moves, and a look that ends when the test says so. */
class Scene {
  now = 0;
  timers = new Map();
  looks = 0;
  ends = [];
  constructor(slow = false) {
    let n = 0;
    const timers = { start: (run, after) => (this.timers.set(++n, { run, at: this.now + after }), n), stop: (timer) => this.timers.delete(timer) };
    this.refresh = new Refresh(() => {
      this.looks++;
      return slow ? new Promise((end) => this.ends.push(end)) : Promise.resolve();
    }, timers);
  }
  async pass(ms) {
    const until = this.now + ms;
    for (;;) {
      for (let i = 0; i < 5; i++) await null; // what was begun goes on
      const [next] = [...this.timers].filter(([, t]) => t.at <= until).sort(([, a], [, b]) => a.at - b.at);
      if (next === undefined) break;
      this.now = next[1].at;
      this.timers.delete(next[0]);
      next[1].run();
    }
    this.now = until;
  }
}

test("a burst of events is one look, however many they are", async () => {
  for (const events of [1, 2, 21, 2000]) {
    const s = new Scene();
    for (let i = 0; i < events; i++) s.refresh.ask();
    await s.pass(60_000);
    assert.equal(s.looks, 1, `${events} events`);
    assert.equal(s.timers.size, 0, "and none follows");
  }
});

test("a burst that lasts through a look and the pause after it is two", async () => {
  const s = new Scene(true);
  s.refresh.ask();
  await s.pass(300);
  for (let i = 0; i < 100; i++) s.refresh.ask(); // during the look
  s.ends.shift()();
  for (let i = 0; i < 100; i++) {
    await s.pass(5);
    s.refresh.ask(); // during the pause
  }
  await s.pass(60_000);
  assert.equal(s.looks, 2);
});

test("a look that has not ended is not doubled", async () => {
  const s = new Scene(true);
  for (let i = 0; i < 1000; i++) {
    s.refresh.ask();
    await s.pass(100);
  }
  assert.equal(s.looks, 1);
});

test("events without an end are looked at ever more seldom, and the last of them is", async () => {
  const s = new Scene();
  for (let i = 0; i < 1000; i++) {
    s.refresh.ask();
    await s.pass(100);
  }
  assert.ok(s.looks >= 15 && s.looks <= 25, `${s.looks} looks after 1000 events`);
  const before = s.looks;
  s.refresh.ask();
  await s.pass(60_000);
  assert.equal(s.looks, before + 1);
  s.refresh.ask();
  await s.pass(300);
  assert.equal(s.looks, before + 2, "and an event after silence is looked at soon again");
});

test("nothing follows the end of a page", async () => {
  const s = new Scene(true);
  s.refresh.ask();
  await s.pass(300);
  s.refresh.ask();
  s.refresh.stop();
  s.ends.shift()();
  await s.pass(60_000);
  assert.equal(s.looks, 1);
  assert.equal(s.timers.size, 0);
});
