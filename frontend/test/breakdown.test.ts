import assert from "node:assert/strict";
import test from "node:test";
import { rowsOf, sharesOf, totalOf } from "../src/breakdown";
import type { PageBar, PageBreakdown } from "../src/data";

const LONG: PageBar = { server: 0, values_ns: [1e6, 0, 6e6, 1e6, 0] };
const SHORT: PageBar = { server: 1, values_ns: [0, 0, 2e6, 0, 0] };
const BREAKDOWN: PageBreakdown = {
  name: "tail",
  label: "Latency breakdown of the slowest requests",
  parts: ["pool wait", "connect", "first byte", "transfer", "send lag"],
  chosen: "100",
  panels: [{ name: "100", title: "at 100/s", bars: [LONG, SHORT] }],
};

test("the longest visible bar fills the width, shorter ones are on a logarithmic axis", () => {
  assert.deepEqual(sharesOf(LONG, [LONG, SHORT]), [0.125, 0, 0.75, 0.125, 0]);
  // From 1 ms, half the shorter bar, to 8 ms there are three doublings.
  assert.ok(Math.abs((sharesOf(SHORT, [LONG, SHORT])[2] ?? 0) - 1 / 3) < 1e-9);
  assert.deepEqual(sharesOf(SHORT, [SHORT]), [0, 0, 1, 0, 0]);
  assert.deepEqual(sharesOf({ server: 2, values_ns: [0] }, []), [0]);
});

test("the rows of a bar are its parts and their total", () => {
  assert.equal(totalOf(LONG), 8e6);
  const rows = rowsOf(BREAKDOWN, LONG);
  assert.deepEqual(rows[2], ["first byte", "6.00 ms"]);
  assert.deepEqual(rows[5], ["response time", "8.00 ms"]);
});
