import assert from "node:assert/strict";
import test from "node:test";
import type { PagePanel, PageRun, PageSeries } from "../src/data";
import { toMarkdown } from "../src/markdown";
import { linearTicks, logTicks, railCentre, rangeOf } from "../src/scales";
import { markerPath, MARKERS, setRunsPerServer, styleOf } from "../src/style";

const RUN: PageRun = {
  x: 0,
  run: 1,
  status: "valid",
  value: 2e6,
  is_endless: false,
  low: null,
  interval: null,
};
const SERIES: PageSeries = { server: 0, medians: [2e6, 8e6], bands: [null, [7e6, 9e6]], runs: [RUN] };
const PANEL: PagePanel = {
  name: "p99",
  title: "p99",
  unit: "ns",
  x: [100, 200],
  x_labels: ["100", "200"],
  x_title: "offered rate",
  is_x_log: false,
  can_be_log: true,
  has_equality: false,
  lines: [],
  series: [SERIES],
};
const UNBOUNDED = [-Infinity, Infinity] as const;

test("the first 280 series have distinct styles, and all markers differ", () => {
  const styles = Array.from({ length: 280 }, (_, server) => JSON.stringify(styleOf(server)));
  assert.equal(new Set(styles).size, 280);
  assert.equal(new Set(MARKERS.map((marker) => markerPath(marker, 0, 0, 4))).size, MARKERS.length);
});

test("runs of one server share a colour and a marker, but not a dash", () => {
  setRunsPerServer(2);
  const [first, second, other] = [styleOf(0), styleOf(1), styleOf(2)];
  setRunsPerServer(1);
  assert.deepEqual([first.colour, first.marker], [second.colour, second.marker]);
  assert.notDeepEqual(first.dash, second.dash);
  assert.deepEqual(first.dash, other.dash);
  assert.notEqual(first.colour, other.colour);
});

test("the vertical range includes all visible runs, bands and limits", () => {
  const log = rangeOf(PANEL, [SERIES], true, UNBOUNDED);
  assert.ok(log.low < 2e6 && log.high > 9e6);
  assert.equal(log.top, log.high);
  const limited = { ...PANEL, lines: [{ value: 5e7, label: "limit" }] };
  assert.ok(rangeOf(limited, [SERIES], false, UNBOUNDED).high > 5e7);
  assert.equal(rangeOf(PANEL, [SERIES], false, UNBOUNDED).low, 0);
});

test("the vertical range follows the viewport and ignores hidden series", () => {
  assert.ok(rangeOf(PANEL, [SERIES], true, [90, 110]).high < 8e6);
  const nothing = rangeOf(PANEL, [], true, UNBOUNDED);
  assert.ok(nothing.low > 0 && nothing.high > nothing.low);
  assert.equal(rangeOf({ ...PANEL, unit: "cores" }, [], false, UNBOUNDED).high, 1);
});

test("runs without a finite value have a rail above the axis", () => {
  const withInfinite = { ...SERIES, runs: [RUN, { ...RUN, value: null, is_endless: true }] };
  for (const isLog of [true, false]) {
    const range = rangeOf(PANEL, [withInfinite], isLog, UNBOUNDED);
    assert.ok(range.top > range.high);
    assert.ok(railCentre(range) > range.high && railCentre(range) < range.top);
  }
});

test("ticks are round numbers", () => {
  assert.deepEqual(logTicks(0.9e6, 12e6), [1e6, 2e6, 5e6, 1e7]);
  assert.deepEqual(logTicks(1e3, 1e9), [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9]);
  assert.deepEqual(linearTicks(3400, 4, false), [0, 1000, 2000, 3000]);
  assert.deepEqual(linearTicks(2.2, 4, false), [0, 1, 2]);
  assert.deepEqual(linearTicks(600, 4, true), [0, 256, 512]);
  assert.ok(linearTicks(0.0134, 4, false).length > 2);
});

test("Markdown tables escape pipes and backslashes, and collapse whitespace", () => {
  const text = toMarkdown([["server", "p99"], ["a|b\\c", " 5 ms\n"]], [false, true]);
  assert.equal(text, "| server | p99 |\n|---|---:|\n| a\\|b\\\\c | 5 ms |\n");
});
