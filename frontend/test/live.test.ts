import assert from "node:assert/strict";
import test from "node:test";
import type { LiveFrame } from "../src/data";
import { History, rangeFor } from "../src/live";

function frame(trial: string, at_s: number, changes: Partial<LiveFrame> = {}): LiveFrame {
  return {
    rows: [],
    trial,
    at_s,
    offered_per_s: null,
    achieved_per_s: null,
    p50_ns: null,
    p99_ns: null,
    cpu_cores: null,
    cpu_limit: null,
    ...changes,
  };
}

test("the history of a trial starts at its first measured value", () => {
  const history = new History();
  history.add([frame("[1/2] a", 100)]);
  history.add([frame("[1/2] a", 101, { achieved_per_s: 5, offered_per_s: 6 })]);
  history.add([frame("[1/2] a", 103.5, { p50_ns: 7 })]);
  assert.deepEqual(history.seconds, [0, 2.5]);
  assert.deepEqual(history.of("achieved_per_s"), [5, null]);
  assert.deepEqual(history.of("p50_ns"), [null, 7]);
});

test("a new trial clears the history, whose length is limited", () => {
  const history = new History();
  history.add([frame("[1/2] a", 1, { cpu_cores: 1 })]);
  for (let second = 0; second < 1500; second += 1) history.add([frame("[2/2] b", second, { cpu_cores: second })]);
  assert.equal(history.seconds.length, 1200);
  assert.equal(history.of("cpu_cores")[1199], 1499);
  history.add([frame("[3/3] c", 1)]);
  assert.deepEqual(history.seconds, []);
});

test("the vertical axis has a range even without data", () => {
  assert.deepEqual(rangeFor(true, null, null), [1e6, 1e9]);
  assert.deepEqual(rangeFor(false, null, null), [0, 1.12]);
  assert.deepEqual(rangeFor(true, 3e6, 1e7), [2e6, 1.6e7]);
  assert.deepEqual(rangeFor(false, 10, 100)[0], 0);
});
