// Follows a whole sweep on its live page until the report replaces it.
import assert from "node:assert/strict";
import { join } from "node:path";
import test, { after, before } from "node:test";
import axe from "axe-core";
import type { Browser } from "playwright-core";
import { inkedPixels, SCREENSHOTS, seriousViolations, startBrowser, visitLive } from "./driver";

let browser: Browser;

before(async () => {
  browser = await startBrowser();
});
after(async () => {
  await browser.close();
});

test("the live page shows each cell as it is measured, and the report at the end", { timeout: 200_000 }, async () => {
  await visitLive(browser, { colorScheme: "light" }, async (page) => {
    const rows = page.locator("#live-rows");
    await rows.getByText(/measuring, \d/).waitFor();
    await rows.getByText(/^offered \d/).waitFor();
    await rows.getByText(/^p50 \d/).waitFor();
    await rows.getByText(/^CPU \d/).waitFor();
    assert.equal(await page.locator("#live-state").textContent(), "measuring");
    const terms = ["now", "next", "rate", "latency", "failures", "server"];
    assert.deepEqual(await rows.locator("dt").allTextContents(), terms);

    // A second browser with a narrow, dark screen sees the same page.
    await visitLive(browser, { colorScheme: "dark", viewport: { width: 400, height: 900 } }, async (other) => {
      await other.locator("#live-rows").getByText(/measuring, \d/).waitFor();
      await other.locator("#live-lines").getByText(/^\[1\/\d\] .* … p\d+ \d/).waitFor({ timeout: 60_000 });
      await other.locator("#live-rows dt").getByText("standing").waitFor({ timeout: 60_000 });
      assert.equal(await other.evaluate(() => document.documentElement.scrollWidth > window.innerWidth), false);
      await other.screenshot({ path: join(SCREENSHOTS, "live-dark-400.png"), fullPage: true });
    });

    await page.locator("#live-lines").getByText(/^\[1\/\d\] .* … p\d+ \d/).waitFor();
    await page.locator("#live-rows").getByText(/^\[2\/\d\] .*: measuring, [2-9]/).waitFor({ timeout: 60_000 });
    assert.ok(Math.min(...(await inkedPixels(page))) > 500);
    assert.equal((await inkedPixels(page)).length, 3);
    assert.deepEqual(await seriousViolations(page, axe.source), []);
    await page.screenshot({ path: join(SCREENSHOTS, "live-light-1200.png"), fullPage: true });

    await page.waitForURL(/\/report$/, { timeout: 120_000 });
    await page.locator("#answer h2").waitFor();
    assert.ok((await page.locator("table").count()) >= 4);
    assert.ok(Math.min(...(await inkedPixels(page))) > 500);
    await page.screenshot({ path: join(SCREENSHOTS, "live-report.png") });
  });
});
