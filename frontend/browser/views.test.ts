// The first views of a report at the widths of a phone, a tablet and a desktop, light and dark.
// Pages: a slow app, a failed server, one server, 48 configurations, a capacity search.
import assert from "node:assert/strict";
import { join } from "node:path";
import test, { after, before } from "node:test";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { inkedPixels, SCREENSHOTS, seriousViolations, startBrowser, visit } from "./driver";

const PAGES = ["slow", "failed", "one", "many", "capacity"];
const WIDTHS = [390, 768, 1280];
const HEIGHT = 900;
let browser: Browser;

before(async () => {
  browser = await startBrowser();
});
after(async () => {
  await browser.close();
});

/** Charts that are open but have nothing drawn. */
async function emptyCharts(page: Page): Promise<string[]> {
  return page.locator("figure > .chart").evaluateAll((charts) =>
    charts
      .filter((chart) => !chart.closest("details:not([open])") && !chart.querySelector("canvas, .bar"))
      .map((chart) => chart.parentElement?.id ?? ""),
  );
}

/** Visible elements that stick out of the page. Tables with many columns scroll within their section. */
async function offScreen(page: Page): Promise<string[]> {
  return page.locator("main *").evaluateAll((elements) =>
    elements
      .filter((element) => {
        const { left, right, width } = element.getBoundingClientRect();
        const isInside = left >= -1 && right <= document.documentElement.clientWidth + 1;
        return width > 0 && !isInside && !element.parentElement?.closest(".scroll");
      })
      .map((element) => `${element.tagName} ${element.className} ${element.textContent?.slice(0, 40)}`),
  );
}

/** Removes rows and figures that are made like those before them, of which axe would check thousands. */
async function thinOut(page: Page): Promise<void> {
  await page.evaluate(() => {
    const repeated = "tbody tr:nth-child(n + 4), tbody:nth-of-type(n + 6), #time details ~ details, #time figure ~ figure";
    for (const element of document.querySelectorAll(repeated)) element.remove();
  });
}

/** Calls `check` at each width and in each color scheme. */
async function atEachSize(page: Page, check: (where: string) => Promise<void>): Promise<void> {
  for (const width of WIDTHS) {
    for (const colorScheme of ["light", "dark"] as const) {
      await page.setViewportSize({ width, height: HEIGHT });
      await page.emulateMedia({ colorScheme });
      // Charts are redrawn in the next frame.
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      await check(`${colorScheme}-${width}`);
    }
  }
}

for (const name of PAGES) {
  test(`the ${name} page has no empty chart, nothing off-screen and no serious violations`, async () => {
    await visit(browser, name, {}, async (page) => {
      await atEachSize(page, async (where) => {
        assert.deepEqual(await emptyCharts(page), [], where);
        assert.ok(Math.min(...(await inkedPixels(page)), Infinity) > 200, where);
        assert.deepEqual(await offScreen(page), [], where);
        const figure = await page.locator("#answer tbody tr > :nth-child(3)").first().boundingBox();
        assert.ok(figure && figure.y + figure.height < HEIGHT, `the first figure is in the first view: ${where}`);
        await page.screenshot({ path: join(SCREENSHOTS, `${name}-${where}.png`) });
      });
      await thinOut(page);
      await atEachSize(page, async (where) => assert.deepEqual(await seriousViolations(page, axe.source), [], where));
    });
  });
}
