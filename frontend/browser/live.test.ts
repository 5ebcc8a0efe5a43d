// A browser follows a whole sweep on its live page, which becomes the report.
import assert from "node:assert/strict";
import { join } from "node:path";
import test, { after, before } from "node:test";
import axe from "axe-core";
import type { Browser } from "playwright-core";
import { follow, inkOf, PICTURES, seriousOf, startBrowser } from "./driver";

let browser: Browser;

before(async () => {
  browser = await startBrowser();
});
after(async () => {
  await browser.close();
});

test("cells appear while they are measured, and the report in the end", { timeout: 200_000 }, async () => {
  await follow(browser, { colorScheme: "light" }, async (page) => {
    const rows = page.locator("#live-rows");
    await rows.getByText(/measuring, \d/).waitFor();
    await rows.getByText(/^offered \d/).waitFor();
    await rows.getByText(/^p50 \d/).waitFor();
    await rows.getByText(/^CPU \d/).waitFor();
    assert.equal(await page.locator("#live-state").textContent(), "measuring");
    assert.deepEqual(await rows.locator("dt").allTextContents(), ["now", "next", "rate", "latency", "failures", "server"]);

    // A second reader, narrow and dark, sees the same.
    await follow(browser, { colorScheme: "dark", viewport: { width: 400, height: 900 } }, async (other) => {
      await other.locator("#live-rows").getByText(/measuring, \d/).waitFor();
      await other.locator("#live-lines").getByText(/^\[1\/\d\] .* … p\d+ \d/).waitFor({ timeout: 60_000 });
      await other.locator("#live-rows dt").getByText("standing").waitFor({ timeout: 60_000 });
      assert.equal(await other.evaluate(() => document.documentElement.scrollWidth > window.innerWidth), false);
      await other.screenshot({ path: join(PICTURES, "live-dark-400.png"), fullPage: true });
    });

    await page.locator("#live-lines").getByText(/^\[1\/\d\] .* … p\d+ \d/).waitFor();
    await page.locator("#live-rows").getByText(/^\[2\/\d\] .*: measuring, [2-9]/).waitFor({ timeout: 60_000 });
    assert.ok(Math.min(...(await inkOf(page))) > 500);
    assert.equal((await inkOf(page)).length, 3);
    assert.deepEqual(await seriousOf(page, axe.source), []);
    await page.screenshot({ path: join(PICTURES, "live-light-1200.png"), fullPage: true });

    await page.waitForURL(/\/report$/, { timeout: 120_000 });
    await page.locator("#answer h2").waitFor();
    assert.ok((await page.locator("table").count()) >= 4);
    assert.ok(Math.min(...(await inkOf(page))) > 500);
    await page.screenshot({ path: join(PICTURES, "live-report.png") });
  });
});
