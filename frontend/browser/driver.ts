// Debian's Chromium without a network, and what the tests ask of a page in it.
import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";

const PROGRAMS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const OPTIONS = [
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

function required(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set; the tests in tests/integration/ set it`);
  return value;
}

export const PICTURES = required("WSGILOAD_PICTURES");
mkdirSync(PICTURES, { recursive: true });

export async function startBrowser(): Promise<Browser> {
  const executablePath = PROGRAMS.find((program) => existsSync(program));
  // As root, which continuous integration is, Chromium has no sandbox.
  return chromium.launch({ executablePath, args: OPTIONS, chromiumSandbox: process.getuid?.() !== 0 });
}

export interface Visit extends BrowserContextOptions {
  hash?: string;
}

/** A page of the tests by its name; what it complained of and asked for is checked when `use` is done. */
export async function visit(
  browser: Browser,
  name: string,
  { hash = "", ...options }: Visit,
  use: (page: Page) => Promise<void>,
): Promise<void> {
  const address = pathToFileURL(join(required("WSGILOAD_PAGES"), `${name}.html`)).href + hash;
  await watch(browser, address, /^(file|data|blob):/, { offline: true, ...options }, use);
}

/** The live page of the running command; it may ask this command alone. */
export async function follow(
  browser: Browser,
  options: BrowserContextOptions,
  use: (page: Page) => Promise<void>,
): Promise<void> {
  const address = required("WSGILOAD_LIVE_URL");
  await watch(browser, address, new RegExp(`^(${address}|data:|blob:)`), options, use);
}

async function watch(
  browser: Browser,
  address: string,
  allowed: RegExp,
  options: BrowserContextOptions,
  use: (page: Page) => Promise<void>,
): Promise<void> {
  const viewport = { width: 1200, height: 900 };
  const context = await browser.newContext({ viewport, ...options });
  const problems: string[] = [];
  const page = await context.newPage();
  page.on("console", (said) => {
    if (["error", "warning"].includes(said.type())) problems.push(`console: ${said.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`error: ${String(error)}`));
  page.on("request", (request) => {
    if (!allowed.test(request.url())) problems.push(`request: ${request.url()}`);
  });
  try {
    await page.goto(address);
    await use(page);
  } finally {
    await context.close();
  }
  assert.deepEqual(problems, [], address);
}

/** What the accessibility checker has to say that is serious. */
export async function seriousOf(page: Page, checker: string): Promise<object[]> {
  await page.evaluate(checker);
  const found = await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run: (where: Document, how: object) => Promise<Found> } };
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, impact, nodes }) => ({
      id,
      impact,
      where: nodes.slice(0, 3).map((node) => node.html.slice(0, 160)),
    }));
  });
  return found.filter(({ impact }) => impact === "serious" || impact === "critical");
}

interface Found {
  violations: { id: string; impact?: string | null; nodes: { html: string }[] }[];
}

/** How many pixels of every canvas that is seen are not empty. */
export async function inkOf(page: Page, within = "body"): Promise<number[]> {
  return page.evaluate((selector) => {
    const canvases = [...document.querySelectorAll<HTMLCanvasElement>(`${selector} canvas`)];
    return canvases.map((canvas) => {
      const copy = document.createElement("canvas");
      [copy.width, copy.height] = [canvas.width, canvas.height];
      const context = copy.getContext("2d", { willReadFrequently: true });
      context?.drawImage(canvas, 0, 0);
      const pixels = context?.getImageData(0, 0, copy.width, copy.height).data ?? [];
      let inked = 0;
      for (let place = 3; place < pixels.length; place += 4) inked += Number((pixels[place] ?? 0) > 0);
      return inked;
    });
  }, within);
}

/** Every canvas as its picture. */
export async function drawnOn(page: Page, within = "body"): Promise<string[]> {
  return page.locator(`${within} canvas`).evaluateAll((canvases) =>
    canvases.map((canvas) => (canvas as HTMLCanvasElement).toDataURL()),
  );
}

/** How long the page kept its thread busy until it had loaded, in seconds of CPU time, which other processes do not lengthen. */
export async function busySeconds(page: Page, reload: () => Promise<unknown>): Promise<number> {
  const session = await page.context().newCDPSession(page);
  const read = async (): Promise<number> => {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration")?.value ?? NaN;
  };
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const before = await read();
  await reload();
  return (await read()) - before;
}

/** Hovers over a chart at a share of its width and height. */
export async function hover(page: Page, figure: string, x: number, y = 0.5): Promise<void> {
  const over = page.locator(`${figure} .u-over`).first();
  await over.evaluate((element) => element.scrollIntoView({ block: "center", behavior: "instant" }));
  // The chart asks where it is when the scrolling is reported, which is a frame later.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const box = await over.boundingBox();
  assert.ok(box);
  await page.mouse.move(box.x + x * box.width, box.y + y * box.height);
}

/** What stands at the pointer: its title, and its rows as name to value. */
export async function tipOf(
  page: Page,
  figure: string,
): Promise<{ title: string; rows: Record<string, string> }> {
  const tip = page.locator(`${figure} .tip:not([hidden])`).first();
  const title = (await tip.locator("b").first().textContent()) ?? "";
  const pairs = await tip.locator("div").evaluateAll((rows) =>
    rows.map((row) => [row.querySelector(".name")?.textContent ?? "", row.querySelector(".value")?.textContent ?? ""]),
  );
  return { title, rows: Object.fromEntries(pairs) as Record<string, string> };
}

/** A column of the table under a chart, by server, for the rows whose second field is `load`. */
export async function columnOf(
  page: Page,
  figure: string,
  column: string,
  load: string,
): Promise<Record<string, string>> {
  const pairs = await page.locator(`${figure} table`).evaluate(
    (table, wanted) => {
      const [head, ...rows] = [...(table as HTMLTableElement).rows].map((row) =>
        [...row.cells].map((cell) => cell.textContent ?? ""),
      );
      const place = head?.indexOf(wanted.column) ?? -1;
      return rows.filter((row) => row[1] === wanted.load).map((row) => [row[0], row[place]]);
    },
    { column, load },
  );
  return Object.fromEntries(pairs) as Record<string, string>;
}
