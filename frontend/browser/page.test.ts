// Report pages in a real browser: they draw, follow the reader, complain of nothing and ask nobody.
import assert from "node:assert/strict";
import { join } from "node:path";
import test, { after, before } from "node:test";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { busySeconds, columnOf, drawnOn, hover, inkOf, PICTURES, seriousOf, startBrowser, tipOf, visit } from "./driver";

const CHARTS = 1 + 2 + 4 + 1;
const SERVERS = 8;
const SEARCHES = 3;
/** Of one search: its order, and p99 and failures by rate. */
const VIEWS = 1 + 2;
let browser: Browser;

before(async () => {
  browser = await startBrowser();
});
after(async () => {
  await browser.close();
});

async function picture(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
}

async function isWiderThanTheScreen(page: Page): Promise<boolean> {
  return page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
}

for (const colorScheme of ["light", "dark"] as const) {
  for (const width of [1200, 400]) {
    test(`every chart draws in ${width} pixels on a ${colorScheme} screen`, async () => {
      await visit(browser, "repeated", { colorScheme, viewport: { width, height: 900 } }, async (page) => {
        const inked = await inkOf(page);
        assert.equal(inked.length, CHARTS);
        assert.ok(Math.min(...inked) > 500, String(inked));
        assert.equal(await isWiderThanTheScreen(page), false);
        await picture(page, `${colorScheme}-${width}`);
      });
    });
  }
}

test("hovering shows what the table says, at every load and on every chart", async () => {
  const columns: [string, string][] = [["#response-time", "p99"], ["#goodput", "goodput/s"], ["#resources", "CPU cores (mean)"]];
  await visit(browser, "single", {}, async (page) => {
    for (const [figure, column] of columns) {
      for (const [x, load] of [[0.08, "1,000"], [0.5, "2,000"], [0.92, "3,000"]] as const) {
        await hover(page, figure, x);
        const { title, rows } = await tipOf(page, figure);
        assert.ok(title.startsWith(`${load} · `), title);
        assert.equal(Object.keys(rows).length, SERVERS);
        const table = await columnOf(page, figure, column, load);
        for (const [server, value] of Object.entries(rows)) {
          // The verdict of a measurement that is not used takes the place of its figure.
          if (["failed", "invalid"].includes(value)) continue;
          assert.ok((table[server] ?? "").startsWith(value.replace(/\/s$/, "")), `${figure} ${server} at ${load}: ${value} and ${table[server]}`);
        }
      }
    }
  });
});

test("the keyboard reads the same as the pointer", async () => {
  await visit(browser, "single", {}, async (page) => {
    await page.locator("#response-time .u-over").focus();
    await page.keyboard.press("ArrowRight");
    const first = await tipOf(page, "#response-time");
    assert.equal(first.title, "1,000 · p99 response time");
    await page.keyboard.press("ArrowRight");
    assert.equal((await tipOf(page, "#response-time")).title, "2,000 · p99 response time");
    await hover(page, "#response-time", 0.08);
    assert.deepEqual(await tipOf(page, "#response-time"), first);
  });
});

test("a server is hidden in every chart, and the address says so", async () => {
  await visit(browser, "single", {}, async (page) => {
    const all = await drawnOn(page);
    const button = page.getByRole("button", { name: "waitress" });
    await button.click();
    assert.match(await page.evaluate(() => location.hash), /\?hide=waitress$/);
    assert.equal(await button.getAttribute("aria-pressed"), "false");
    await page.mouse.move(5, 5);
    const shown = await drawnOn(page);
    assert.equal(shown.length, CHARTS);
    assert.ok(shown.every((chart, place) => chart !== all[place]), "every chart has changed");
    for (const figure of ["#response-time", "#goodput"]) {
      await hover(page, figure, 0.5);
      assert.equal("waitress" in (await tipOf(page, figure)).rows, false);
    }
    await button.click();
    await button.blur();
    await page.mouse.move(5, 5);
    assert.deepEqual(await drawnOn(page), all);
    await page.getByRole("button", { name: "none" }).click();
    assert.equal(await page.locator("button.server[aria-pressed=true]").count(), 0);
  });
});

test("one server stands out in every chart", async () => {
  await visit(browser, "single", {}, async (page) => {
    const all = await drawnOn(page);
    await page.locator("#controls select").selectOption("waitress");
    const marked = await drawnOn(page);
    assert.ok(marked.every((chart, place) => chart !== all[place]), "every chart has changed");
    assert.match(await page.evaluate(() => location.hash), /highlight=waitress/);
    await hover(page, "#goodput", 0.5, 0.95);
    assert.equal(await page.locator("#goodput .tip .marked .name").first().textContent(), "waitress");
    await page.getByRole("button", { name: "uwsgi" }).hover();
    assert.notDeepEqual(await drawnOn(page), marked);
  });
});

test("quantile, scale, highlight and what is hidden come from the address", async () => {
  const hash = "#response-time?quantile=p50&scale=linear&highlight=waitress&hide=uwsgi";
  await visit(browser, "single", { hash }, async (page) => {
    assert.match((await page.locator("#response-time .panel-title").textContent()) ?? "", /^p50/);
    assert.equal(await page.locator("#controls select").inputValue(), "waitress");
    assert.equal(await page.locator("button.server[aria-pressed=false]").textContent(), "uwsgi");
    const linear = await drawnOn(page, "#response-time");
    await page.getByRole("button", { name: "logarithmic" }).click();
    assert.notDeepEqual(await drawnOn(page, "#response-time"), linear);
    await page.locator("#response-time .chooser button[data-choice='p99']").click();
    assert.match(await page.evaluate(() => location.hash), /quantile=p99&/);
    await hover(page, "#response-time", 0.08);
    const { rows } = await tipOf(page, "#response-time");
    const table = await columnOf(page, "#response-time", "p99", "1,000");
    assert.equal(rows["waitress"], table["waitress"]);
  });
  await visit(browser, "single", { hash: "#nowhere?quantile=p12&highlight=nobody&load=x&hide=y" }, async (page) => {
    assert.equal((await inkOf(page)).length, CHARTS);
  });
});

test("dragging zooms, and a button and a double click zoom out", async () => {
  await visit(browser, "single", {}, async (page) => {
    const whole = await drawnOn(page, "#goodput");
    const zoom = async (): Promise<void> => {
      await hover(page, "#goodput", 0.4);
      await page.mouse.down();
      await hover(page, "#goodput", 0.7);
      await hover(page, "#goodput", 0.99);
      await page.mouse.up();
      await page.mouse.move(5, 5);
      assert.notDeepEqual(await drawnOn(page, "#goodput"), whole);
    };
    await zoom();
    await page.getByRole("button", { name: "reset zoom" }).click();
    assert.deepEqual(await drawnOn(page, "#goodput"), whole);
    await zoom();
    await hover(page, "#goodput", 0.5);
    await page.locator("#goodput .u-over").first().dblclick();
    await page.mouse.move(5, 5);
    assert.deepEqual(await drawnOn(page, "#goodput"), whole);
  });
});

test("a cell over time is drawn when a link leads to it", async () => {
  await visit(browser, "single", { hash: "#time-3" }, async (page) => {
    const place = page.locator("#time-3");
    assert.equal(await place.evaluate((figure) => figure.closest("details")?.open), true);
    assert.ok((await place.locator("canvas").count()) >= 4, "response time, CPU, throttling, memory");
    assert.equal(await page.locator("#time-23 canvas").count(), 0);
    await hover(page, "#time-3", 0.5);
    const { title, rows } = await tipOf(page, "#time-3");
    const row = await page.locator("#time-3 tbody tr", { hasText: title }).first().locator("td").allTextContents();
    assert.deepEqual([rows["p50"], rows["p99"], rows["max"]], row.slice(1, 4));
    await place.screenshot({ path: join(PICTURES, "over-time.png") });
  });
});

test("a field of a heatmap says what its table says", async () => {
  await visit(browser, "single", { hash: "#time-3" }, async (page) => {
    let found = 0;
    for (const y of [0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9]) {
      await hover(page, "#time-3", 0.33, y);
      const { rows } = await tipOf(page, "#time-3");
      const column = Object.keys(rows).find((name) => / s to /.test(name));
      if (!column) continue;
      const [heading, count] = (rows[column] ?? "").split(": ");
      const table = page.locator("#time-3 table.fields").last();
      const headings = await table.locator("th").allTextContents();
      const fields = await table.locator("tr", { hasText: column }).locator("td").allTextContents();
      assert.equal(fields[headings.indexOf(heading ?? "")], count, `${column} ${heading}`);
      found += Number(count) > 0 ? 1 : 0;
    }
    assert.ok(found >= 1, "the pointer was over a field with responses");
  });
});

test("tables and the answer are copied as Markdown", async () => {
  await visit(browser, "single", { permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
    const copied = async (within: string): Promise<string> => {
      const holder = page.locator(within).first();
      await holder.evaluate((element) => {
        const folded = element.closest("details");
        if (folded) folded.open = true;
      });
      await holder.locator("xpath=ancestor-or-self::*[.//button[contains(@class,'copy')]][1]").locator("button.copy").first().click();
      return page.evaluate(() => navigator.clipboard.readText());
    };
    const table = await copied("#goodput table");
    assert.ok(table.startsWith("| server | offered/s |"), table);
    assert.equal(table.trimEnd().split("\n").length, 2 + 3 * SERVERS);
    assert.match(await copied("#answer pre.markdown"), /Which of 8 servers/);
  });
});

test("paper is light whatever the screen is", async () => {
  await visit(browser, "repeated", { colorScheme: "dark" }, async (page) => {
    const ink = (): Promise<string> =>
      page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--series-0").trim());
    const dark = await ink();
    await page.evaluate(() => {
      const style = getComputedStyle(document.documentElement);
      addEventListener("beforeprint", () => {
        document.body.dataset.printed = style.getPropertyValue("--series-0").trim();
      });
    });
    const paper = await page.pdf({ format: "A4", path: join(PICTURES, "print.pdf") });
    assert.ok(paper.subarray(0, 4).toString() === "%PDF");
    const printed = await page.evaluate(() => document.body.dataset.printed);
    assert.equal(printed, "#0072b2");
    assert.notEqual(printed, dark);
    assert.equal(await ink(), dark);
    assert.equal((await inkOf(page)).length, CHARTS);
  });
});

test("without scripts all tables are there", async () => {
  for (const name of ["single", "change", "capacity", "load"]) {
    let tables = 0;
    await visit(browser, name, {}, async (page) => {
      tables = await page.locator("table").count();
    });
    await visit(browser, name, { javaScriptEnabled: false }, async (page) => {
      assert.equal(await page.locator("table").count(), tables);
      assert.ok(tables >= 4);
      assert.equal(await page.locator("canvas").count(), 0);
      assert.equal(await page.locator("noscript p").isVisible(), true);
      for (const figure of await page.locator("figure").all()) {
        assert.ok((await figure.locator("table").count()) >= 1);
      }
    });
  }
});

test("text of a run stays text", async () => {
  await visit(browser, "hostile", {}, async (page) => {
    assert.equal(await page.locator("img, script[src]").count(), 0);
    assert.match((await page.locator("button.server").textContent()) ?? "", /^<\/script><img src=x/);
  });
});

test("two runs lie over each other", async () => {
  await visit(browser, "change", {}, async (page) => {
    assert.equal((await inkOf(page)).length, CHARTS);
    assert.equal(await isWiderThanTheScreen(page), false);
    await hover(page, "#response-time", 0.08);
    const names = Object.keys((await tipOf(page, "#response-time")).rows);
    assert.ok(names.includes("waitress (first)") && names.includes("waitress (second)"), String(names));
    const factors = await page.locator("#forest .factor:not(.axis)").count();
    assert.ok(factors > SERVERS);
    assert.equal(factors, await page.locator("#forest tbody tr").count());
    await picture(page, "change");
  });
});

for (const [colorScheme, width] of [["light", 1200], ["dark", 1200], ["light", 400]] as const) {
  test(`a capacity search draws in ${width} pixels on a ${colorScheme} screen`, async () => {
    await visit(browser, "capacity", { colorScheme, viewport: { width, height: 900 } }, async (page) => {
      const inked = await inkOf(page, "#searches");
      assert.equal(inked.length, SEARCHES * VIEWS);
      assert.ok(Math.min(...inked) > 500, String(inked));
      assert.equal(await isWiderThanTheScreen(page), false);
      await picture(page, `capacity-${colorScheme}-${width}`);
      await page.locator("#search-0").screenshot({ path: join(PICTURES, `search-${colorScheme}-${width}.png`) });
    });
  });
}

test("the bars of the slowest requests say what their table says, and follow the reader", async () => {
  await visit(browser, "single", {}, async (page) => {
    const bars = page.locator("#tail .bar");
    const load = (await page.locator("#tail .chooser [aria-pressed=true]").getAttribute("data-choice")) ?? "";
    assert.ok((await bars.count()) >= 5);
    for (const bar of await bars.all()) {
      await bar.focus();
      const { title, rows } = await tipOf(page, "#tail");
      for (const [part, value] of Object.entries(rows)) {
        assert.equal((await columnOf(page, "#tail", part, load))[title], value, `${title} ${part}`);
      }
      const label = (await bar.getAttribute("aria-label")) ?? "";
      assert.ok(Object.entries(rows).every(([part, value]) => label.includes(`${part} ${value}`)), label);
    }
    const before = await bars.count();
    await page.getByRole("button", { name: "waitress" }).click();
    assert.equal(await bars.count(), before - 1);
    await page.locator("#tail .chooser button[data-choice='1,000']").click();
    assert.match(await page.evaluate(() => location.hash), /load=1%2C000/);
    await page.locator("#tail").screenshot({ path: join(PICTURES, "tail.png") });
  });
});

test("a trial says the same to the pointer, to the keyboard and in the table", async () => {
  await visit(browser, "capacity", {}, async (page) => {
    const over = page.locator("#search-0 .u-over").first();
    await over.focus();
    for (let step = 0; step < 5; step += 1) {
      await page.keyboard.press("ArrowRight");
      const { title, rows } = await tipOf(page, "#search-0");
      const number = title.match(/^trial (\d+) · /)?.[1] ?? "";
      const fields = await page.locator("#search-0 tbody tr").nth(Number(number) - 1).locator("td").allTextContents();
      const [, phase, outcome, , rate, p99, failed] = fields;
      assert.equal(title, `trial ${number} · ${phase}`);
      assert.deepEqual(rows, { rate, p99, failed, outcome });
    }
    const before = await drawnOn(page, "#search-0");
    await hover(page, "#search-0", 0.5);
    await page.mouse.move(5, 5);
    assert.equal(await page.locator("#search-0 .tip:not([hidden])").count(), 0);
    assert.notDeepEqual(await drawnOn(page, "#search-0"), before);
  });
});

for (const [colorScheme, width] of [["light", 1200], ["dark", 400]] as const) {
  test(`the page of a load draws in ${width} pixels on a ${colorScheme} screen`, async () => {
    await visit(browser, "load", { colorScheme, viewport: { width, height: 900 } }, async (page) => {
      const inked = await inkOf(page);
      assert.ok(inked.length >= 1 + 4, "percentiles; response time, CPU, throttling and memory over time");
      assert.ok(Math.min(...inked) > 200, String(inked));
      assert.equal(await isWiderThanTheScreen(page), false);
      await hover(page, "#spectrum", 0.01);
      assert.match((await tipOf(page, "#spectrum")).title, /^p50 · /);
      await picture(page, `load-${colorScheme}-${width}`);
    });
  });
}

for (const name of ["single", "change", "capacity", "load"]) {
  for (const colorScheme of ["light", "dark"] as const) {
    test(`axe has nothing serious to say of ${name}, ${colorScheme}`, async () => {
      await visit(browser, name, { colorScheme }, async (page) => {
        assert.deepEqual(await seriousOf(page, axe.source), []);
      });
    });
  }
}

test("a page of nine servers and one of thirty open in under a second", async () => {
  for (const name of ["nine", "thirty"]) {
    await visit(browser, name, {}, async (page) => {
      const busy = await busySeconds(page, () => page.reload());
      assert.ok(Math.min(...(await inkOf(page))) > 500);
      assert.ok(busy > 0 && busy < 1, `${name}: ${busy} s`);
    });
  }
});
