// The charts of the page. Each is drawn into the element that has its name as id.
import { drawBars, legendOf } from "./breakdown";
import type { PageBreakdown, PageChart, PagePanel, PageSearch, PageTimeline } from "./data";
import { PanelPlot, type Plot } from "./panel";
import { makeLegend, SearchPlot, viewsOf } from "./search";
import type { Store } from "./state";
import { TimelinePlot } from "./timeline";

const HEIGHT = 250;
const TALL = 360;
const SEARCH_HEIGHT = 300;
// In print, two charts must fit on one page.
const PRINTED_HEIGHT = 200;
const PRINTED_TALL = 300;
const PRINTED_WIDTH = 650;

/** A chart that can be redrawn at any width. */
export interface Figure {
  draw(): void;
  dim(): void;
  resize(): void;
  resetZoom(): void;
}

export function chartElement(name: string): HTMLElement | null {
  return document.querySelector(`#${CSS.escape(name)} > .chart`);
}

function widthOf(element: HTMLElement): number {
  if (isPrinting()) return element.closest(".panels:not(.one)") ? PRINTED_WIDTH / 2 - 10 : PRINTED_WIDTH;
  return Math.max(240, element.clientWidth);
}

abstract class BaseFigure implements Figure {
  protected plots: { plot: Plot; holder: HTMLElement }[] = [];

  constructor(protected readonly container: HTMLElement) {
    let width = 0;
    new ResizeObserver(() => {
      const hasNewWidth = Math.abs(container.clientWidth - width) > 1;
      width = container.clientWidth;
      if (hasNewWidth && this.plots.length && !isPrinting()) this.resize();
    }).observe(container);
  }

  draw(): void {
    for (const { plot } of this.plots) plot.destroy();
    this.plots = [];
    this.container.replaceChildren();
    // Charts in a closed <details> have no size; they are drawn when it opens.
    if (this.container.closest("details:not([open])") === null) this.render();
  }

  dim(): void {
    for (const { plot } of this.plots) plot.dim();
  }

  resize(): void {
    for (const { plot, holder } of this.plots) plot.resize(widthOf(holder));
  }

  resetZoom(): void {
    for (const { plot } of this.plots) plot.resetZoom();
  }

  protected abstract render(): void;
}

function isPrinting(): boolean {
  return document.documentElement.classList.contains("printing");
}

export class ChartFigure extends BaseFigure {
  constructor(
    container: HTMLElement,
    private readonly chart: PageChart,
    private readonly store: Store,
  ) {
    super(container);
  }

  protected render(): void {
    const panels = document.createElement("div");
    panels.className = this.chart.choice === null ? "panels" : "panels one";
    if (this.chart.choice !== null) this.container.append(this.chooser(this.chart.choice));
    this.container.append(panels);
    // Insert all panels before drawing any: the grid divides the width between them.
    const holders = this.shown().map((panel) => [panel, makePanel(panel, panels)] as const);
    for (const [panel, holder] of holders) this.drawPanel(panel, holder);
  }

  private shown(): readonly PagePanel[] {
    const { choice, panels } = this.chart;
    if (choice === null) return panels;
    const name = this.chosen(choice);
    return panels.filter((panel) => panel.name === name);
  }

  /** The panel that the URL fragment selects, or the default if the chart has no such panel. */
  private chosen(choice: string): string {
    const name = this.store.current.choices[choice];
    return this.chart.panels.some((panel) => panel.name === name) ? (name ?? "") : this.chart.chosen;
  }

  private chooser(choice: string): HTMLElement {
    const named = this.chart.panels.map(({ name, title }) => ({ name, title: choice === "load" ? title : name }));
    return makeChooser(choice, named, this.chosen(choice), (name) => this.choose(choice, name));
  }

  private choose(choice: string, name: string): void {
    this.store.change({ choices: { ...this.store.current.choices, [choice]: name } });
    // Redrawing replaced the buttons, so restore the keyboard focus.
    this.container.querySelector<HTMLElement>(`[data-choice="${CSS.escape(name)}"]`)?.focus();
  }

  private drawPanel(panel: PagePanel, holder: HTMLElement): void {
    const [low, tall] = isPrinting() ? [PRINTED_HEIGHT, PRINTED_TALL] : [HEIGHT, TALL];
    const size = { width: widthOf(holder), height: this.chart.choice === null ? low : tall };
    const plot = new PanelPlot(panel, this.store, holder, size, this.chart.label);
    this.plots.push({ plot, holder });
  }
}

/** One button per panel; the panel of the pressed button is shown. */
function makeChooser(
  choice: string,
  panels: readonly { name: string; title: string }[],
  chosen: string,
  choose: (name: string) => void,
): HTMLElement {
  const group = document.createElement("div");
  group.className = "chooser";
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", choice);
  for (const panel of panels) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = panel.title;
    button.dataset.choice = panel.name;
    button.setAttribute("aria-pressed", String(panel.name === chosen));
    button.addEventListener("click", () => choose(panel.name));
    group.append(button);
  }
  return group;
}

/** Appends a panel with its title and returns the element to draw the plot into. */
function makePanel(panel: { title: string }, panels: HTMLElement): HTMLElement {
  const box = document.createElement("div");
  box.className = "panel";
  const title = document.createElement("div");
  title.className = "panel-title";
  title.textContent = panel.title;
  const holder = document.createElement("div");
  box.append(title, holder);
  panels.append(box);
  return holder;
}

export class BreakdownFigure extends BaseFigure {
  constructor(
    container: HTMLElement,
    private readonly breakdown: PageBreakdown,
    private readonly store: Store,
  ) {
    super(container);
  }

  dim(): void {
    const { highlighted } = this.store;
    for (const bar of this.container.querySelectorAll<HTMLElement>(".bar")) {
      const isDim = highlighted !== null && bar.dataset.server !== String(highlighted);
      bar.classList.toggle("dim", isDim);
    }
  }

  protected render(): void {
    const { panels, chosen } = this.breakdown;
    const selected = this.store.current.choices.load;
    const shown = panels.find(({ name }) => name === selected) ?? panels.find(({ name }) => name === chosen);
    if (!shown) return;
    const choose = (name: string): void => {
      this.store.change({ choices: { ...this.store.current.choices, load: name } });
      this.container.querySelector<HTMLElement>(`[data-choice="${CSS.escape(name)}"]`)?.focus();
    };
    const bars = document.createElement("div");
    this.container.append(makeChooser("load", panels, shown.name, choose), legendOf(this.breakdown), bars);
    drawBars(this.breakdown, shown, this.store, bars);
    this.dim();
  }
}

export class SearchFigure extends BaseFigure {
  constructor(
    container: HTMLElement,
    private readonly search: PageSearch,
  ) {
    super(container);
  }

  protected render(): void {
    const panels = document.createElement("div");
    panels.className = "panels";
    this.container.append(makeLegend(), panels);
    const views = viewsOf(this.search);
    const holders = views.map((view) => [view, makePanel(view, panels)] as const);
    const height = isPrinting() ? PRINTED_HEIGHT : SEARCH_HEIGHT;
    for (const [view, holder] of holders) {
      const plot = new SearchPlot(this.search, view, holder, { width: widthOf(holder), height });
      this.plots.push({ plot, holder });
    }
  }
}

export class TimelineFigure extends BaseFigure {
  constructor(
    container: HTMLElement,
    private readonly cell: PageTimeline,
  ) {
    super(container);
  }

  protected render(): void {
    const plot = new TimelinePlot(this.cell, this.container, widthOf(this.container));
    this.plots.push({ plot, holder: this.container });
  }
}
