// Report pages in a real browser: rendering, interaction and accessibility.
// Each visit fails on errors, console warnings and network requests.
import assert from "node:assert/strict";
import { join } from "node:path";
import test, { after, before } from "node:test";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import {
  canvasImages,
  hover,
  inkedPixels,
  mainThreadSeconds,
  SCREENSHOTS,
  seriousViolations,
  startBrowser,
  tableColumn,
  tooltipOf,
  visit,
} from "./driver";

const CHARTS = 1 + 2 + 4 + 1;
const SERVERS = 8;
const SEARCHES = 3;
/** Views of a search: trials in order, p99 by rate and failures by rate. */
const VIEWS_PER_SEARCH = 1 + 2;
let browser: Browser;

before(async () => {
  browser = await startBrowser();
});
after(async () => {
  await browser.close();
});

async function screenshot(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
}

async function overflowsHorizontally(page: Page): Promise<boolean> {
  return page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
}

test("every chart is drawn", async () => {
  await visit(browser, "repeated", {}, async (page) => {
    const pixels = await inkedPixels(page);
    assert.equal(pixels.length, CHARTS);
    assert.ok(Math.min(...pixels) > 500, String(pixels));
    await screenshot(page, "repeated");
  });
});

test("tooltips match the tables of their charts at each load", async () => {
  const columns: [string, string][] = [
    ["#response-time", "p99"],
    ["#goodput", "goodput/s"],
    ["#resources", "CPU cores (mean)"],
  ];
  await visit(browser, "single", {}, async (page) => {
    for (const [figure, column] of columns) {
      for (const [x, load] of [[0.08, "1,000"], [0.5, "2,000"], [0.92, "3,000"]] as const) {
        await hover(page, figure, x);
        const { title, rows } = await tooltipOf(page, figure);
        assert.ok(title.startsWith(`${load} · `), title);
        assert.equal(Object.keys(rows).length, SERVERS);

        const cells = await tableColumn(page, figure, column, load);
        for (const [server, value] of Object.entries(rows)) {
          // A failed or invalid measurement has its verdict in place of the value.
          if (["failed", "invalid"].includes(value)) continue;
          const cell = cells[server] ?? "";
          const message = `${figure} ${server} at ${load}: tooltip ${value}, table ${cell}`;
          assert.ok(cell.startsWith(value.replace(/\/s$/, "")), message);
        }
      }
    }
  });
});

test("keyboard and pointer show the same tooltips", async () => {
  await visit(browser, "single", {}, async (page) => {
    await page.locator("#response-time .u-over").focus();
    await page.keyboard.press("ArrowRight");
    const first = await tooltipOf(page, "#response-time");
    assert.equal(first.title, "1,000 · p99 response time");
    await page.keyboard.press("ArrowRight");
    assert.equal((await tooltipOf(page, "#response-time")).title, "2,000 · p99 response time");
    await hover(page, "#response-time", 0.08);
    assert.deepEqual(await tooltipOf(page, "#response-time"), first);
  });
});

test("hiding a server changes every chart and the URL", async () => {
  await visit(browser, "single", {}, async (page) => {
    const all = await canvasImages(page);
    const button = page.getByRole("button", { name: "waitress" });
    await button.click();
    assert.match(await page.evaluate(() => location.hash), /\?hide=waitress$/);
    assert.equal(await button.getAttribute("aria-pressed"), "false");
    await page.mouse.move(5, 5);
    const remaining = await canvasImages(page);
    assert.equal(remaining.length, CHARTS);
    assert.ok(remaining.every((image, index) => image !== all[index]), "every chart has changed");
    for (const figure of ["#response-time", "#goodput"]) {
      await hover(page, figure, 0.5);
      assert.equal("waitress" in (await tooltipOf(page, figure)).rows, false);
    }
    await button.click();
    await button.blur();
    await page.mouse.move(5, 5);
    assert.deepEqual(await canvasImages(page), all);
    await page.getByRole("button", { name: "none" }).click();
    assert.equal(await page.locator("button.server[aria-pressed=true]").count(), 0);
  });
});

test("highlighting a server changes every chart and the URL", async () => {
  await visit(browser, "single", {}, async (page) => {
    const all = await canvasImages(page);
    await page.locator("#controls select").selectOption("waitress");
    const highlighted = await canvasImages(page);
    assert.ok(highlighted.every((image, index) => image !== all[index]), "every chart has changed");
    assert.match(await page.evaluate(() => location.hash), /highlight=waitress/);
    await hover(page, "#goodput", 0.5, 0.95);
    assert.equal(await page.locator("#goodput .tip .marked .name").first().textContent(), "waitress");
    await page.getByRole("button", { name: "uwsgi" }).hover();
    assert.notDeepEqual(await canvasImages(page), highlighted);
  });
});

test("quantile, scale, highlight and hidden servers are restored from the URL", async () => {
  const hash = "#response-time?quantile=p50&scale=linear&highlight=waitress&hide=uwsgi";
  await visit(browser, "single", { hash }, async (page) => {
    assert.match((await page.locator("#response-time .panel-title").textContent()) ?? "", /^p50/);
    assert.equal(await page.locator("#controls select").inputValue(), "waitress");
    assert.equal(await page.locator("button.server[aria-pressed=false]").textContent(), "uwsgi");
    const linear = await canvasImages(page, "#response-time");
    await page.getByRole("button", { name: "logarithmic" }).click();
    assert.notDeepEqual(await canvasImages(page, "#response-time"), linear);
    await page.locator("#response-time .chooser button[data-choice='p99']").click();
    assert.match(await page.evaluate(() => location.hash), /quantile=p99&/);
    await hover(page, "#response-time", 0.08);
    const { rows } = await tooltipOf(page, "#response-time");
    const cells = await tableColumn(page, "#response-time", "p99", "1,000");
    assert.equal(rows["waitress"], cells["waitress"]);
  });
  await visit(browser, "single", { hash: "#nowhere?quantile=p12&highlight=nobody&load=x&hide=y" }, async (page) => {
    assert.equal((await inkedPixels(page)).length, CHARTS);
  });
});

test("dragging zooms in, and the reset button or a double click zooms out", async () => {
  await visit(browser, "single", {}, async (page) => {
    const full = await canvasImages(page, "#goodput");
    const zoom = async (): Promise<void> => {
      await hover(page, "#goodput", 0.4);
      await page.mouse.down();
      await hover(page, "#goodput", 0.7);
      await hover(page, "#goodput", 0.99);
      await page.mouse.up();
      await page.mouse.move(5, 5);
      assert.notDeepEqual(await canvasImages(page, "#goodput"), full);
    };
    await zoom();
    await page.getByRole("button", { name: "reset zoom" }).click();
    assert.deepEqual(await canvasImages(page, "#goodput"), full);
    await zoom();
    await hover(page, "#goodput", 0.5);
    await page.locator("#goodput .u-over").first().dblclick();
    await page.mouse.move(5, 5);
    assert.deepEqual(await canvasImages(page, "#goodput"), full);
  });
});

test("a link to a cell opens and draws its charts over time", async () => {
  await visit(browser, "single", { hash: "#time-3" }, async (page) => {
    const figure = page.locator("#time-3");
    assert.equal(await figure.evaluate((element) => element.closest("details")?.open), true);
    assert.ok((await figure.locator("canvas").count()) >= 4, "response time, CPU, throttling, memory");
    assert.equal(await page.locator("#time-23 canvas").count(), 0);
    await hover(page, "#time-3", 0.5);
    const { title, rows } = await tooltipOf(page, "#time-3");
    const row = await page.locator("#time-3 tbody tr", { hasText: title }).first().locator("td").allTextContents();
    assert.deepEqual([rows["p50"], rows["p99"], rows["max"]], row.slice(1, 4));
    await figure.screenshot({ path: join(SCREENSHOTS, "over-time.png") });
  });
});

test("heatmap tooltips match the table", async () => {
  await visit(browser, "single", { hash: "#time-3" }, async (page) => {
    let nonEmptyBins = 0;
    for (const y of [0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9]) {
      await hover(page, "#time-3", 0.33, y);
      const { rows } = await tooltipOf(page, "#time-3");
      const column = Object.keys(rows).find((name) => / s to /.test(name));
      if (!column) continue;
      const [heading, count] = (rows[column] ?? "").split(": ");
      const table = page.locator("#time-3 table.fields").last();
      const headings = await table.locator("th").allTextContents();
      const counts = await table.locator("tr", { hasText: column }).locator("td").allTextContents();
      assert.equal(counts[headings.indexOf(heading ?? "")], count, `${column} ${heading}`);
      nonEmptyBins += Number(count) > 0 ? 1 : 0;
    }
    assert.ok(nonEmptyBins >= 1, "the pointer was over a bin with responses");
  });
});

test("tables and the summary can be copied as Markdown", async () => {
  await visit(browser, "single", { permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
    const copy = async (within: string): Promise<string> => {
      const element = page.locator(within).first();
      await element.evaluate((node) => {
        const details = node.closest("details");
        if (details) details.open = true;
      });

      const nearest = "xpath=ancestor-or-self::*[.//button[contains(@class,'copy')]][1]";
      await element.locator(nearest).locator("button.copy").first().click();
      return page.evaluate(() => navigator.clipboard.readText());
    };
    const table = await copy("#goodput table");
    assert.ok(table.startsWith("| server | offered/s |"), table);
    assert.equal(table.trimEnd().split("\n").length, 2 + 3 * SERVERS);
    assert.match(await copy("#answer pre.markdown"), /Which of 8 servers/);
  });
});

test("pages are printed in light mode, even from a dark screen", async () => {
  await visit(browser, "repeated", { colorScheme: "dark" }, async (page) => {
    const seriesColor = (): Promise<string> =>
      page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--series-0").trim());
    const dark = await seriesColor();
    await page.evaluate(() => {
      const style = getComputedStyle(document.documentElement);
      addEventListener("beforeprint", () => {
        document.body.dataset.printed = style.getPropertyValue("--series-0").trim();
      });
    });
    const pdf = await page.pdf({ format: "A4", path: join(SCREENSHOTS, "print.pdf") });
    assert.ok(pdf.subarray(0, 4).toString() === "%PDF");
    const printed = await page.evaluate(() => document.body.dataset.printed);
    assert.equal(printed, "#0072b2");
    assert.notEqual(printed, dark);
    assert.equal(await seriesColor(), dark);
    assert.equal((await inkedPixels(page)).length, CHARTS);
  });
});

test("all tables are present without JavaScript", async () => {
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

test("markup in run data is shown as text", async () => {
  await visit(browser, "hostile", {}, async (page) => {
    assert.equal(await page.locator("img, script[src]").count(), 0);
    assert.match((await page.locator("button.server").textContent()) ?? "", /^<\/script><img src=x/);
  });
});

test("a comparison of two stored runs overlays both on each chart", async () => {
  await visit(browser, "change", {}, async (page) => {
    assert.equal((await inkedPixels(page)).length, CHARTS);
    assert.equal(await overflowsHorizontally(page), false);
    await hover(page, "#response-time", 0.08);
    const names = Object.keys((await tooltipOf(page, "#response-time")).rows);
    assert.ok(names.includes("waitress (first)") && names.includes("waitress (second)"), String(names));
    const factors = await page.locator("#forest .point").count();
    assert.ok(factors > SERVERS);
    assert.equal(factors, await page.locator("#forest tbody tr").count());
    await screenshot(page, "change");
  });
});

test("a capacity search is drawn", async () => {
  await visit(browser, "capacity", {}, async (page) => {
    const pixels = await inkedPixels(page, "#searches");
    assert.equal(pixels.length, SEARCHES * VIEWS_PER_SEARCH);
    assert.ok(Math.min(...pixels) > 500, String(pixels));
  });
});

test("bars of the slowest requests match the table and update with the hidden servers and the load", async () => {
  await visit(browser, "single", {}, async (page) => {
    const bars = page.locator("#tail .bar");
    const load = (await page.locator("#tail .chooser [aria-pressed=true]").getAttribute("data-choice")) ?? "";
    assert.ok((await bars.count()) >= 5);
    for (const bar of await bars.all()) {
      await bar.focus();
      const { title, rows } = await tooltipOf(page, "#tail");
      for (const [part, value] of Object.entries(rows)) {
        assert.equal((await tableColumn(page, "#tail", part, load))[title], value, `${title} ${part}`);
      }
      const label = (await bar.getAttribute("aria-label")) ?? "";
      assert.ok(Object.entries(rows).every(([part, value]) => label.includes(`${part} ${value}`)), label);
    }
    const before = await bars.count();
    await page.getByRole("button", { name: "waitress" }).click();
    assert.equal(await bars.count(), before - 1);
    await page.locator("#tail .chooser button[data-choice='1,000']").click();
    assert.match(await page.evaluate(() => location.hash), /load=1%2C000/);
    await page.locator("#tail").screenshot({ path: join(SCREENSHOTS, "tail.png") });
  });
});

test("trial tooltips match the table and disappear when the pointer leaves", async () => {
  await visit(browser, "capacity", {}, async (page) => {
    const over = page.locator("#search-0 .u-over").first();
    await over.focus();
    for (let step = 0; step < 5; step += 1) {
      await page.keyboard.press("ArrowRight");
      const { title, rows } = await tooltipOf(page, "#search-0");
      const number = title.match(/^trial (\d+) · /)?.[1] ?? "";
      const row = page.locator("#search-0 tbody tr").nth(Number(number) - 1);
      const [, phase, outcome, , rate, p99, failed] = await row.locator("td").allTextContents();
      assert.equal(title, `trial ${number} · ${phase}`);
      assert.deepEqual(rows, { rate, p99, failed, outcome });
    }
    const before = await canvasImages(page, "#search-0");
    await hover(page, "#search-0", 0.5);
    await page.mouse.move(5, 5);
    assert.equal(await page.locator("#search-0 .tip:not([hidden])").count(), 0);
    assert.notDeepEqual(await canvasImages(page, "#search-0"), before);
  });
});

for (const [colorScheme, width] of [["light", 1200], ["dark", 400]] as const) {
  test(`the report of a single load is drawn at ${width} px in ${colorScheme} mode`, async () => {
    await visit(browser, "load", { colorScheme, viewport: { width, height: 900 } }, async (page) => {
      const pixels = await inkedPixels(page);
      assert.ok(pixels.length >= 1 + 4, "percentiles; response time, CPU, throttling and memory over time");
      assert.ok(Math.min(...pixels) > 200, String(pixels));
      assert.equal(await overflowsHorizontally(page), false);
      await hover(page, "#spectrum", 0.01);
      assert.match((await tooltipOf(page, "#spectrum")).title, /^p50 · /);
      await screenshot(page, `load-${colorScheme}-${width}`);
    });
  });
}

for (const name of ["change", "load"]) {
  for (const colorScheme of ["light", "dark"] as const) {
    test(`the ${name} page has no serious accessibility violations in ${colorScheme} mode`, async () => {
      await visit(browser, name, { colorScheme }, async (page) => {
        assert.deepEqual(await seriousViolations(page, axe.source), []);
      });
    });
  }
}

test("pages with 9 and 30 servers load in under 1 s of CPU time", async () => {
  for (const name of ["nine", "thirty"]) {
    await visit(browser, name, {}, async (page) => {
      const seconds = await mainThreadSeconds(page, () => page.reload());
      assert.ok(Math.min(...(await inkedPixels(page))) > 500);
      assert.ok(seconds > 0 && seconds < 1, `${name}: ${seconds} s`);
    });
  }
});
