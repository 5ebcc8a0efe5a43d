// Draws the charts of a report page. Text and tables are static HTML and do not need this script.
import "uplot/dist/uPlot.min.css";
import "./page.css";
import { BreakdownFigure, chartElement, ChartFigure, SearchFigure, TimelineFigure, type Figure } from "./charts";
import { makeControls } from "./controls";
import { readData, type PageData } from "./data";
import { followLive } from "./live";
import { copyButton, tableMarkdown } from "./markdown";
import { readHash, Store } from "./state";
import { setRunsPerServer } from "./style";

function saveHash(hash: string): void {
  try {
    history.replaceState(null, "", hash);
  } catch {
    // The browser does not allow this here. The page works, but its URL does not record the view.
  }
}

function chartsOf(data: PageData, store: Store): Figure[] {
  return data.charts.flatMap((chart) => {
    const container = chartElement(chart.name);
    return container ? [new ChartFigure(container, chart, store)] : [];
  });
}

function breakdownOf(data: PageData, store: Store): Figure[] {
  const container = data.breakdown && chartElement(data.breakdown.name);
  return data.breakdown && container ? [new BreakdownFigure(container, data.breakdown, store)] : [];
}

function timelinesOf(data: PageData): Figure[] {
  return data.timelines.flatMap((cell) => {
    const container = chartElement(cell.name);
    return container ? [drawWhenOpened(new TimelineFigure(container, cell), container)] : [];
  });
}

function searchesOf(data: PageData): Figure[] {
  return data.searches.flatMap((search) => {
    const container = chartElement(search.name);
    return container ? [new SearchFigure(container, search)] : [];
  });
}

function drawWhenOpened(figure: Figure, container: HTMLElement): Figure {
  container.closest("details")?.addEventListener("toggle", () => {
    if (!container.hasChildNodes()) figure.draw();
  });
  return figure;
}

/** Insert the rows of large tables once their part of the page is opened: thousands of rows would delay the page. */
function fillTablesWhenOpened(): void {
  for (const rows of document.querySelectorAll<HTMLScriptElement>("script.rows")) {
    const fill = (): void => {
      rows.insertAdjacentHTML("beforebegin", rows.text); // escaped by the template
      rows.remove();
    };
    const part = rows.closest("details");
    if (part && !part.open) part.addEventListener("toggle", fill, { once: true });
    else fill();
  }
}

function addCopyButtons(): void {
  for (const table of document.querySelectorAll<HTMLTableElement>("main table")) {
    const holder = table.closest("details.data") ?? table.parentElement;
    holder?.append(copyButton(() => tableMarkdown(table)));
  }
  for (const text of document.querySelectorAll<HTMLElement>("pre.markdown")) {
    text.before(copyButton(() => text.textContent ?? ""));
  }
}

/** Keeps the current view in the URL fragment when the reader follows a link to a chart. */
function handleLinks(store: Store): void {
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest<HTMLAnchorElement>("a[href^='#']");
    if (!link) return;
    event.preventDefault();
    const { anchor } = readHash(link.getAttribute("href") ?? "");
    store.goTo(anchor);
    scrollToAnchor(anchor);
  });
}

function scrollToAnchor(anchor: string): void {
  const target = anchor ? document.getElementById(anchor) : null;
  const details = target?.closest<HTMLDetailsElement>("details");
  if (details) details.open = true;
  // The sticky controls must not cover the target.
  const bar = document.getElementById("controls")?.offsetHeight ?? 0;
  document.documentElement.style.scrollPaddingTop = `${bar + 8}px`;
  target?.scrollIntoView();
}

/** Redraws the charts for print, which has a fixed width, and when the colour scheme changes. */
function preparePrint(drawAll: () => void): void {
  const root = document.documentElement.classList;
  window.addEventListener("beforeprint", () => {
    root.add("printing");
    drawAll();
  });
  window.addEventListener("afterprint", () => {
    root.remove("printing");
    drawAll();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
}

function start(): void {
  if (followLive()) return;
  const data = readData();
  if (!data) return;
  setRunsPerServer(data.runs_each);
  const store = new Store(data.servers, location.hash, saveHash);
  const charts = [...chartsOf(data, store), ...breakdownOf(data, store)];
  const figures = [...charts, ...searchesOf(data), ...timelinesOf(data)];
  const drawAll = (): void => figures.forEach((figure) => figure.draw());
  store.onChange(() => charts.forEach((figure) => figure.draw()));
  store.onHighlight(() => charts.forEach((figure) => figure.dim()));

  const controls = document.getElementById("controls");
  if (controls) {
    makeControls(store, controls, () => figures.forEach((figure) => figure.resetZoom()));
  }
  drawAll();
  fillTablesWhenOpened();
  addCopyButtons();
  handleLinks(store);
  preparePrint(drawAll);
  scrollToAnchor(readHash(location.hash).anchor);
}

start();
