import assert from "node:assert/strict";
import test from "node:test";
import cases from "../../tests/unit/format_cases.json";
import type { Unit } from "../src/data";
import { format, formatTick } from "../src/format";

for (const [unit, pairs] of Object.entries(cases)) {
  test(`${unit} is formatted like in the tables of the page`, () => {
    for (const [value, text] of pairs as [number, string][]) {
      assert.equal(format(value, unit as Unit), text);
    }
  });
}

test("missing values are a dash, not 0", () => {
  assert.equal(format(null, "ns"), "–");
  assert.equal(format(undefined, "count"), "–");
});

test("tick labels have no trailing zeros", () => {
  assert.equal(formatTick(5_000_000, "ns"), "5 ms");
  assert.equal(formatTick(2_500_000, "ns"), "2.5 ms");
  assert.equal(formatTick(10_000_000, "ns"), "10 ms");
  assert.equal(formatTick(100_000_000, "ns"), "100 ms");
  assert.equal(formatTick(2000, "per_s"), "2,000");
  assert.equal(formatTick(0.5, "ratio"), "50 %");
  assert.equal(formatTick(1.5, "cores"), "1.5");
  assert.equal(formatTick(128 * 2 ** 20, "bytes"), "128 MiB");
});
