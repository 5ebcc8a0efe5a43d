import assert from "node:assert/strict";
import test from "node:test";
import { known, readHash, START, Store, writeHash } from "../src/state";

test("a view survives a round trip through the URL fragment", () => {
  const view = {
    choices: { quantile: "p99.9", load: "1,000" },
    isLinear: true,
    highlight: "a&b=c#d",
    hidden: ["gunicorn-gthread w=2 & more", "ünïcode"],
  };
  assert.deepEqual(readHash(writeHash({ anchor: "response-time", view })), {
    anchor: "response-time",
    view,
  });
});

test("a URL fragment without a view selects the default view", () => {
  assert.deepEqual(readHash(""), { anchor: "", view: START });
  assert.deepEqual(readHash("#cells"), { anchor: "cells", view: START });
  assert.equal(writeHash({ anchor: "cells", view: START }), "#cells");
});

test("unknown servers in a URL fragment are ignored", () => {
  const view = { ...START, highlight: "<script>", hidden: ["b", "constructor"] };
  assert.deepEqual(known(view, ["a", "b"]), { ...START, hidden: ["b"] });
});

test("view changes redraw the charts, and hovering only dims them", () => {
  const addresses: string[] = [];
  const store = new Store(["a", "b"], "#x?highlight=b", (hash) => addresses.push(hash));
  let drawn = 0;
  let dimmed = 0;
  store.onChange(() => (drawn += 1));
  store.onHighlight(() => (dimmed += 1));
  assert.equal(store.highlighted, 1);

  store.point(0);
  store.point(0);
  assert.deepEqual([store.highlighted, drawn, dimmed], [0, 0, 1]);
  store.point(null);
  assert.equal(store.highlighted, 1);

  store.toggle(0);
  assert.deepEqual([store.isHidden(0), store.isHidden(1), drawn], [true, false, 1]);
  store.toggle(0);
  assert.equal(store.isHidden(0), false);
  assert.deepEqual(addresses, ["#x?highlight=b&hide=a", "#x?highlight=b"]);
});
