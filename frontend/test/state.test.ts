import assert from "node:assert/strict";
import test from "node:test";
import { DEFAULT_VIEW, readHash, Store, withKnownServers, writeHash } from "../src/state";

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
  assert.deepEqual(readHash(""), { anchor: "", view: DEFAULT_VIEW });
  assert.deepEqual(readHash("#cells"), { anchor: "cells", view: DEFAULT_VIEW });
  assert.equal(writeHash({ anchor: "cells", view: DEFAULT_VIEW }), "#cells");
});

test("unknown servers in a URL fragment are ignored", () => {
  const view = { ...DEFAULT_VIEW, highlight: "<script>", hidden: ["b", "constructor"] };
  assert.deepEqual(withKnownServers(view, ["a", "b"]), { ...DEFAULT_VIEW, hidden: ["b"] });
});

test("view changes redraw the charts, and hovering only dims them", () => {
  const addresses: string[] = [];
  const store = new Store(["a", "b"], "#x?highlight=b", (hash) => addresses.push(hash));
  let drawn = 0;
  let dimmed = 0;
  store.onChange(() => (drawn += 1));
  store.onHighlight(() => (dimmed += 1));
  assert.equal(store.highlighted, 1);

  store.hover(0);
  store.hover(0);
  assert.deepEqual([store.highlighted, drawn, dimmed], [0, 0, 1]);
  store.hover(null);
  assert.equal(store.highlighted, 1);

  store.toggle(0);
  assert.deepEqual([store.isHidden(0), store.isHidden(1), drawn], [true, false, 1]);
  store.toggle(0);
  assert.equal(store.isHidden(0), false);
  assert.deepEqual(addresses, ["#x?highlight=b&hide=a", "#x?highlight=b"]);
});
