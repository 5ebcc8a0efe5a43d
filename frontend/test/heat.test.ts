import assert from "node:assert/strict";
import test from "node:test";
import type { PageHeat } from "../src/data";
import { binAt, columnName, largestOf, opacityOf, rowsAt } from "../src/heat";

const HEAT: PageHeat = {
  ends_s: [1, 2],
  edges_ns: [1e6, 2e6, 5e6],
  counts: [[1200, 3], [0, 9]],
  marks: [{ column: 1, text: "throttling (12 of 14)" }],
};

test("a time and a response time identify a bin, or none outside the heatmap", () => {
  assert.deepEqual(binAt(HEAT, 0.5, 1.5e6), { column: 0, row: 0 });
  assert.deepEqual(binAt(HEAT, 1, 2e6), { column: 1, row: 1 });
  for (const [seconds, ns] of [[-0.1, 1.5e6], [2, 1.5e6], [0.5, 0.9e6], [0.5, 5e6]] as const) {
    assert.equal(binAt(HEAT, seconds, ns), null);
  }
});

test("tooltip rows contain the column, the bin with its count, and coinciding events", () => {
  assert.equal(columnName(HEAT, 1), "1.0 s to 2.0 s");
  assert.deepEqual(rowsAt(HEAT, { column: 0, row: 0 }), [["0.0 s to 1.0 s", "up to 2.00 ms: 1,200"]]);
  assert.deepEqual(rowsAt(HEAT, { column: 1, row: 1 })[1], ["coincided with", "throttling (12 of 14)"]);
});

test("empty bins are transparent, and opacity grows with the count", () => {
  const largest = largestOf(HEAT);
  assert.equal(largest, 1200);
  const [none, one, some, most] = [0, 1, 30, largest].map((count) => opacityOf(count, largest));
  assert.equal(none, 0);
  assert.ok(0 < one! && one! < some! && some! < most! && most! <= 1);
  assert.ok(opacityOf(1, 1) > 0.5);
  assert.equal(largestOf({ ...HEAT, counts: [] }), 0);
});
