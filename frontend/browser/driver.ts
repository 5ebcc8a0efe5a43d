// Starts the system's Chromium, which can reach only 127.0.0.1, and inspects pages in it.
import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";

const EXECUTABLES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const FLAGS = [
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

export const SCREENSHOTS = required("WSGILOAD_PICTURES");
mkdirSync(SCREENSHOTS, { recursive: true });

export async function startBrowser(): Promise<Browser> {
  const executablePath = EXECUTABLES.find((path) => existsSync(path));
  // Chromium's sandbox does not work as root, and CI runs as root.
  return chromium.launch({ executablePath, args: FLAGS, chromiumSandbox: process.getuid?.() !== 0 });
}

export interface VisitOptions extends BrowserContextOptions {
  hash?: string;
}

/**
 * Opens a report page offline and passes it to `use`.
 * Fails on page errors, on console errors and warnings, and on network requests.
 */
export async function visit(
  browser: Browser,
  name: string,
  { hash = "", ...options }: VisitOptions,
  use: (page: Page) => Promise<void>,
): Promise<void> {
  const url = pathToFileURL(join(required("WSGILOAD_PAGES"), `${name}.html`)).href + hash;
  await visitUrl(browser, url, /^(file|data|blob):/, { offline: true, ...options }, use);
}

/**
 * Opens the live page of the running command and passes it to `use`.
 * Fails on page errors, on console errors and warnings, and on requests to other servers.
 */
export async function visitLive(
  browser: Browser,
  options: BrowserContextOptions,
  use: (page: Page) => Promise<void>,
): Promise<void> {
  const url = required("WSGILOAD_LIVE_URL");
  await visitUrl(browser, url, new RegExp(`^(${url}|data:|blob:)`), options, use);
}

async function visitUrl(
  browser: Browser,
  url: string,
  allowed: RegExp,
  options: BrowserContextOptions,
  use: (page: Page) => Promise<void>,
): Promise<void> {
  const viewport = { width: 1200, height: 900 };
  const context = await browser.newContext({ viewport, ...options });
  const problems: string[] = [];
  const page = await context.newPage();
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`error: ${String(error)}`));
  page.on("request", (request) => {
    if (!allowed.test(request.url())) problems.push(`request: ${request.url()}`);
  });
  try {
    await page.goto(url);
    await use(page);
  } finally {
    await context.close();
  }
  assert.deepEqual(problems, [], url);
}

/** Serious and critical accessibility violations; `axeSource` is the source of axe-core. */
export async function seriousViolations(page: Page, axeSource: string): Promise<object[]> {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axeSource);
  const reported = await page.evaluate(async () => {
    type Axe = { run: (context: Document, options: object) => Promise<AxeResults> };
    const { axe } = window as unknown as { axe: Axe };
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, impact, nodes }) => ({
      id,
      impact,
      elements: nodes.slice(0, 3).map((node) => node.html.slice(0, 160)),
    }));
  });

  return reported.filter(({ impact }) => impact === "serious" || impact === "critical");
}

interface AxeResults {
  violations: { id: string; impact?: string | null; nodes: { html: string }[] }[];
}

/** The number of non-transparent pixels of each canvas inside the element `within`. */
export async function inkedPixels(page: Page, within = "body"): Promise<number[]> {
  return page.evaluate((selector) => {
    const canvases = [...document.querySelectorAll<HTMLCanvasElement>(`${selector} canvas`)];
    return canvases.map((canvas) => {
      const copy = document.createElement("canvas");
      [copy.width, copy.height] = [canvas.width, canvas.height];
      const context = copy.getContext("2d", { willReadFrequently: true });
      context?.drawImage(canvas, 0, 0);
      const pixels = context?.getImageData(0, 0, copy.width, copy.height).data ?? [];

      let inked = 0;
      // Every fourth byte is a pixel's alpha.
      for (let index = 3; index < pixels.length; index += 4) inked += Number((pixels[index] ?? 0) > 0);
      return inked;
    });
  }, within);
}

/** The image of each canvas inside the element `within`, as a data URL. */
export async function canvasImages(page: Page, within = "body"): Promise<string[]> {
  return page.locator(`${within} canvas`).evaluateAll((canvases) =>
    canvases.map((canvas) => (canvas as HTMLCanvasElement).toDataURL()),
  );
}

/** CPU time of the page's main thread during `reload`, in seconds. Unlike wall time, it excludes other processes. */
export async function mainThreadSeconds(page: Page, reload: () => Promise<unknown>): Promise<number> {
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

/** Moves the pointer over a chart; `x` and `y` are fractions of its width and height. */
export async function hover(page: Page, figure: string, x: number, y = 0.5): Promise<void> {
  const over = page.locator(`${figure} .u-over`).first();
  await over.evaluate((element) => element.scrollIntoView({ block: "center", behavior: "instant" }));

  // uPlot updates its cached position on the scroll event, which fires a frame later.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

  const box = await over.boundingBox();
  assert.ok(box);
  await page.mouse.move(box.x + x * box.width, box.y + y * box.height);
}

/** The visible tooltip of a chart: its title, and its values by row name. */
export async function tooltipOf(
  page: Page,
  figure: string,
): Promise<{ title: string; rows: Record<string, string> }> {
  const tooltip = page.locator(`${figure} .tip:not([hidden])`).first();
  const title = (await tooltip.locator("b").first().textContent()) ?? "";
  const pairs = await tooltip.locator("div").evaluateAll((rows) =>
    rows.map((row) => [row.querySelector(".name")?.textContent ?? "", row.querySelector(".value")?.textContent ?? ""]),
  );
  return { title, rows: Object.fromEntries(pairs) as Record<string, string> };
}

/** The cells of one column of a chart's table, by server, from the rows whose second cell is `load`. */
export async function tableColumn(
  page: Page,
  figure: string,
  column: string,
  load: string,
): Promise<Record<string, string>> {
  const pairs = await page.locator(`${figure} table`).evaluate(
    (table, target) => {
      const [head, ...rows] = [...(table as HTMLTableElement).rows].map((row) =>
        [...row.cells].map((cell) => cell.textContent ?? ""),
      );
      const index = head?.indexOf(target.column) ?? -1;
      return rows.filter((row) => row[1] === target.load).map((row) => [row[0], row[index]]);
    },
    { column, load },
  );
  return Object.fromEntries(pairs) as Record<string, string>;
}
