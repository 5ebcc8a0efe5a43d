import assert from "node:assert/strict";
import test from "node:test";
import type { PageSearch, PageTrial } from "../src/data";
import { nearest, rateTicks, verticalRange, viewsOf } from "../src/search";

const TRIAL: PageTrial = {
  number: 2,
  phase: "doubling",
  rate_per_s: 100,
  outcome: "met",
  is_repeated: false,
  values: [8e6, 0],
  texts: ["8.00 ms", "0 %"],
};
const SEARCH: PageSearch = {
  name: "search-0",
  label: "Capacity search on waitress",
  conditions: [
    { title: "p99", unit: "ns", limit: 20e6, label: "p99<20ms" },
    { title: "failed", unit: "ratio", limit: 0.001, label: "error_rate<=0.1%" },
  ],
  trials: [TRIAL, { ...TRIAL, number: 3, rate_per_s: 400, outcome: "missed", values: [null, 0.2], texts: ["infinite", "20.0 %"] }],
  bracket: [320, 330],
  interval_95: [310, 340],
  rate_per_s: 320,
};

test("a search has one view of the trials in order and one per condition", () => {
  const [byNumber, p99, failed] = viewsOf(SEARCH);
  assert.ok(byNumber && p99 && failed);
  assert.deepEqual([byNumber.x(TRIAL), byNumber.y(TRIAL)], [2, 100]);
  assert.deepEqual([p99.x(TRIAL), p99.y(TRIAL)], [100, 8e6]);
  assert.equal(failed.y(TRIAL), 0);
  assert.deepEqual([p99.isLog, failed.isLog], [true, false]);
});

test("the vertical range includes all values, the objective, the bracket and the interval", () => {
  const [byNumber, p99, failed] = viewsOf(SEARCH);
  assert.ok(byNumber && p99 && failed);
  const [low, high] = verticalRange(byNumber, SEARCH);
  assert.ok(low < 100 && high > 400);
  const wide = verticalRange(byNumber, { ...SEARCH, interval_95: [50, 900] });
  assert.ok(wide[0] < 50 && wide[1] > 900);
  assert.ok(verticalRange(p99, SEARCH)[1] > 20e6);
  assert.deepEqual(verticalRange(failed, { ...SEARCH, trials: [] })[0], 0);
  const [floor, top] = verticalRange(p99, { ...SEARCH, trials: [], conditions: [] });
  assert.ok(floor > 0 && top > floor);
});

test("a rate axis has ticks even if its range contains no round rates", () => {
  assert.deepEqual(rateTicks(90, 1100), [100, 200, 500, 1000]);
  const narrow = rateTicks(321, 347);
  assert.ok(narrow.length >= 3 && narrow.every((tick) => tick >= 321 && tick <= 347), String(narrow));
});

test("the pointer selects the nearest trial, but only nearby", () => {
  const points = [{ left: 10, top: 10 }, { left: 20, top: 10 }];
  assert.equal(nearest(points, 17, 12), 1);
  assert.equal(nearest(points, 90, 90), null);
  assert.equal(nearest([], 1, 1), null);
});
