// The charts of a capacity search: the rate of each trial in order, and by rate each figure of the
// objective.
import uPlot from "uplot";
import type { PageObjective, PageSearch, PageTrial, Unit } from "./data";
import { formatRate, formatTick, threeDigits } from "./format";
import { axis, FONT, verticalAxis, type Plot } from "./panel";
import { logTicks } from "./scales";
import { colourOf, markerPath, type Marker, type Role } from "./style";
import { Tooltip, type Row } from "./tooltip";

type Outcome = PageTrial["outcome"];
type Canvas = CanvasRenderingContext2D;
type Interval = readonly [number, number];

const OUTCOME_STYLES: Record<Outcome, { marker: Marker; role: Role; isHollow: boolean }> = {
  met: { marker: "circle", role: "good", isHollow: false },
  missed: { marker: "cross", role: "bad", isHollow: false },
  inconclusive: { marker: "square", role: "chart-muted", isHollow: true },
};
const REPEATED_OPACITY = 0.35;
const MAX_DISTANCE = 28;
const pixels = (css: number): number => css * (window.devicePixelRatio || 1);

/** One panel of a capacity search. */
export interface View {
  title: string;
  xTitle: string;
  /** Whether the horizontal axis shows rates; otherwise, the vertical axis does. */
  isOverRate: boolean;
  unit: Unit;
  isLog: boolean;
  limit: PageObjective | null;
  x: (trial: PageTrial) => number;
  /** Null if the value is not finite or was not measured. */
  y: (trial: PageTrial) => number | null;
}

/** One view of the trials in order, then one view per condition of the objective. */
export function viewsOf(search: PageSearch): View[] {
  const byNumber: View = {
    title: "rate of each trial",
    xTitle: "trial",
    isOverRate: false,
    unit: "per_s",
    isLog: true,
    limit: null,
    x: (trial) => trial.number,
    y: (trial) => trial.rate_per_s,
  };
  const byRate = search.conditions.map(
    (limit, index): View => ({
      title: limit.unit === "ns" ? `${limit.title} of each trial` : "share of requests that failed",
      xTitle: "offered rate, requests per second",
      isOverRate: true,
      unit: limit.unit,
      isLog: limit.unit === "ns",
      limit,
      x: (trial) => trial.rate_per_s,
      y: (trial) => trial.values[index] ?? null,
    }),
  );
  return [byNumber, ...byRate];
}

/** Ticks of a logarithmic rate axis; if fewer than two would be round, they are evenly spaced. */
export function rateTicks(low: number, high: number): number[] {
  const roundTicks = logTicks(low, high);
  if (roundTicks.length > 1) return roundTicks;
  const step = (high / low) ** (1 / 4);
  const ticks = Array.from({ length: 5 }, (_, index) => Number((low * step ** index).toPrecision(3)));
  return [...new Set(ticks)].filter((tick) => tick >= low && tick <= high);
}

/** The range of the vertical axis: all values and all reference lines. */
export function verticalRange(view: View, search: PageSearch): [number, number] {
  const values = search.trials.map(view.y).filter((value) => value !== null);
  const references = view.isOverRate
    ? [view.limit?.limit ?? 0]
    : [...search.bracket, ...(search.interval_95 ?? []), search.rate_per_s].filter((value) => value !== null);
  const all = [...values, ...references];
  if (!view.isLog) return [0, Math.max(...all, 0) * 1.2 || 1];
  const positive = all.filter((value) => value > 0);
  return positive.length ? [Math.min(...positive) / 1.25, Math.max(...positive) * 1.35] : [1, 10];
}

/** Index of the nearest point, or null if none is close enough. */
export function nearest(points: readonly { left: number; top: number }[], left: number, top: number): number | null {
  const distances = points.map((point) => Math.hypot(point.left - left, point.top - top));
  const shortest = Math.min(...distances);
  return shortest <= MAX_DISTANCE ? distances.indexOf(shortest) : null;
}

/** The legend of the outcomes. */
export function makeLegend(): HTMLElement {
  const legend = document.createElement("div");
  legend.className = "outcomes";
  for (const outcome of ["met", "missed", "inconclusive"] as const) {
    const { marker, role, isHollow } = OUTCOME_STYLES[outcome];
    const entry = document.createElement("span");
    const fill = isHollow ? "none" : "currentColor";
    // Safe markup: it contains only text from this module.
    entry.innerHTML =
      `<svg viewBox="0 0 12 12" aria-hidden="true" style="color: var(--${role})">` +
      `<path d="${markerPath(marker, 6, 6, 4)}" fill="${fill}" stroke="currentColor" stroke-width="1.6"/></svg>`;
    entry.append(outcome);
    legend.append(entry);
  }
  return legend;
}

export class SearchPlot implements Plot {
  private readonly plot: uPlot;
  private readonly tooltip: Tooltip;
  private readonly trials: readonly PageTrial[];
  private selected: number | null = null;

  constructor(
    private readonly search: PageSearch,
    private readonly view: View,
    target: HTMLElement,
    size: { width: number; height: number },
  ) {
    this.trials = [...search.trials].sort((a, b) => view.x(a) - view.x(b));
    const data = [this.trials.map(view.x), this.trials.map(view.y)];
    this.plot = new uPlot(this.options(size), data as uPlot.AlignedData, target);
    this.tooltip = new Tooltip(this.plot.over);
    this.addKeyboardControl();
  }

  resize(width: number): void {
    this.plot.setSize({ width, height: this.plot.height });
  }

  dim(): void {
    // A search has only one server.
  }

  resetZoom(): void {
    const [min, max] = this.xExtent();
    this.plot.setScale("x", { min, max });
  }

  destroy(): void {
    this.plot.destroy();
  }

  private xExtent(): [number, number] {
    const { view, trials } = this;
    const all = trials.map(view.x);
    return [all[0] ?? 1, all[all.length - 1] ?? 2];
  }

  private options(size: { width: number; height: number }): uPlot.Options {
    const { view } = this;
    return {
      ...size,
      padding: [8, 14, 0, 0],
      legend: { show: false },
      cursor: { points: { show: false }, drag: { x: true, y: false, dist: 8 } },
      scales: {
        x: { time: false, distr: view.isOverRate ? 3 : 1, range: (_plot, min, max) => this.xRange(min, max) },
        y: { distr: view.isLog ? 3 : 1, range: () => verticalRange(view, this.search) },
      },
      axes: [this.horizontalAxis(), this.verticalAxis(size.height)],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: {
        drawAxes: [() => this.drawClipped(0, (canvas) => this.drawBehind(canvas))],
        draw: [() => this.drawClipped(pixels(6), (canvas) => this.trials.forEach((trial) => this.drawTrial(canvas, trial)))],
        setCursor: [() => this.onCursorMove()],
      },
    };
  }

  private xRange(min: number, max: number): [number, number] {
    const [first, last] = this.xExtent();
    if (min > first || max < last) return [min, max];
    if (this.view.isOverRate) return [first / 1.1, last * 1.1];
    return [first - 1, last + 1];
  }

  private horizontalAxis(): uPlot.Axis {
    const { isOverRate, xTitle } = this.view;
    const splits = (plot: uPlot, low: number, high: number): number[] =>
      isOverRate ? withoutOverlaps(plot, rateTicks(low, high)) : integerTicks(low, high, plot.width / 60);
    return axis({
      label: xTitle,
      size: 30,
      splits: (plot, _axis, low, high) => splits(plot, low, high),
      values: (_plot, ticks) => ticks.map((tick) => formatTick(tick, isOverRate ? "per_s" : "count")),
    });
  }

  private verticalAxis(height: number): uPlot.Axis {
    const defaults = verticalAxis(this.view.unit, height);
    if (this.view.isOverRate) return defaults;
    return { ...defaults, splits: (_plot, _axis, low, high) => rateTicks(low, high) };
  }

  /** Clips the drawing to the plot area plus a margin, and restores the canvas state. */
  private drawClipped(margin: number, draw: (canvas: Canvas) => void): void {
    const { ctx, bbox } = this.plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left - margin, bbox.top - margin, bbox.width + 2 * margin, bbox.height + 2 * margin);
    ctx.clip();
    ctx.font = FONT.replace("11px", `${pixels(11)}px`);
    draw(ctx);
    ctx.restore();
  }

  private drawBehind(canvas: Canvas): void {
    const { bracket, interval_95: interval, rate_per_s: rate } = this.search;
    this.drawBand(canvas, bracket);
    if (rate !== null) this.drawLine(canvas, this.rateLine(rate), `${threeDigits(rate)}/s`, []);
    if (interval) this.drawInterval(canvas, interval);
    if (this.view.limit) {
      const top = this.plot.valToPos(this.view.limit.limit, "y", true);
      const { left, width } = this.plot.bbox;
      this.drawLine(canvas, [left, top, left + width, top], this.view.limit.label, [pixels(5), pixels(4)]);
    }
  }

  /** End points (x, y, x, y) of the line at a rate, across the whole plot area. */
  private rateLine(rate: number): [number, number, number, number] {
    const { left, top, width, height } = this.plot.bbox;
    const at = this.plot.valToPos(rate, this.view.isOverRate ? "x" : "y", true);
    return this.view.isOverRate ? [at, top, at, top + height] : [left, at, left + width, at];
  }

  private drawBand(canvas: Canvas, bracket: PageSearch["bracket"]): void {
    const [low, high] = bracket;
    if (low === null || high === null) return;
    const [lowLine, highLine] = [this.rateLine(low), this.rateLine(high)];
    const left = Math.min(lowLine[0], highLine[0]);
    const top = Math.min(lowLine[1], highLine[1]);
    const width = Math.max(lowLine[2], highLine[2]) - left;
    const height = Math.max(lowLine[3], highLine[3]) - top;
    canvas.fillStyle = colourOf("series-0");
    canvas.globalAlpha = 0.2;
    canvas.fillRect(left, top, Math.max(width, pixels(2)), Math.max(height, pixels(2)));
    canvas.globalAlpha = 1;
  }

  private drawLine(canvas: Canvas, [x, y, toX, toY]: [number, number, number, number], name: string, dash: number[]): void {
    canvas.strokeStyle = canvas.fillStyle = colourOf(dash.length ? "chart-muted" : "ink");
    canvas.lineWidth = pixels(1);
    canvas.setLineDash(dash);
    canvas.beginPath();
    canvas.moveTo(x, y);
    canvas.lineTo(toX, toY);
    canvas.stroke();
    canvas.setLineDash([]);
    if (x === toX) return;
    canvas.textAlign = "left";
    canvas.textBaseline = "bottom";
    canvas.fillText(name, x + pixels(6), y - pixels(2));
  }

  /** Draws an interval with end caps, near the right or the lower edge of the plot area. */
  private drawInterval(canvas: Canvas, interval: Interval): void {
    const { left, top, width, height } = this.plot.bbox;
    const scale = this.view.isOverRate ? "x" : "y";
    const [low, high] = interval.map((rate) => this.plot.valToPos(rate, scale, true)) as [number, number];
    const cap = pixels(5);
    const at = this.view.isOverRate ? top + height - pixels(9) : left + width - pixels(9);
    canvas.strokeStyle = colourOf("series-0");
    canvas.lineWidth = pixels(2);
    canvas.beginPath();
    const line = (from: number, fromSide: number, to: number, toSide: number): void => {
      if (this.view.isOverRate) {
        canvas.moveTo(from, fromSide);
        canvas.lineTo(to, toSide);
      } else {
        canvas.moveTo(fromSide, from);
        canvas.lineTo(toSide, to);
      }
    };
    line(low, at, high, at);
    for (const end of [low, high]) line(end, at - cap, end, at + cap);
    canvas.stroke();
  }

  private drawTrial(canvas: Canvas, trial: PageTrial): void {
    const { marker, role, isHollow } = OUTCOME_STYLES[trial.outcome];
    const { left, top } = this.positionOf(trial, true);
    const isSelected = this.selected !== null && this.trials[this.selected] === trial;
    const outline = new Path2D(markerPath(marker, left, top, pixels(isSelected ? 6 : 4)));
    canvas.globalAlpha = trial.is_repeated ? REPEATED_OPACITY : 1;
    canvas.lineWidth = pixels(1.8);
    canvas.strokeStyle = colourOf(role);
    canvas.fillStyle = isHollow ? colourOf("page") : colourOf(role);
    canvas.fill(outline);
    canvas.stroke(outline);
    canvas.globalAlpha = 1;
  }

  /** Position of a trial; without a finite value, at the upper edge. */
  private positionOf(trial: PageTrial, isCanvas: boolean): { left: number; top: number } {
    const value = this.view.y(trial);
    const edge = isCanvas ? this.plot.bbox.top + pixels(6) : 6;
    return {
      left: this.plot.valToPos(this.view.x(trial), "x", isCanvas),
      top: value === null ? edge : this.plot.valToPos(value, "y", isCanvas),
    };
  }

  private onCursorMove(): void {
    // uPlot moves the cursor once in its constructor, before the tooltip exists.
    if (!this.tooltip || !this.plot.over.matches(":hover")) return;
    const { left = -1, top = -1 } = this.plot.cursor;
    const points = this.trials.map((trial) => this.positionOf(trial, false));
    this.select(left < 0 ? null : nearest(points, left, top));
  }

  private select(index: number | null): void {
    const trial = index === null ? undefined : this.trials[index];
    if (index !== this.selected) {
      this.selected = index;
      this.plot.redraw(false);
    }
    if (!trial) return this.tooltip.hide();
    const { left, top } = this.positionOf(trial, false);
    this.tooltip.show(`trial ${trial.number} · ${trial.phase}`, this.rowsOf(trial), left, top);
  }

  private rowsOf(trial: PageTrial): Row[] {
    const values = this.search.conditions.map((condition, index) => [condition.title, trial.texts[index] ?? ""] as const);
    const outcome = `${trial.outcome}${trial.is_repeated ? ", repeated" : ""}`;
    const rows = [["rate", `${formatRate(trial.rate_per_s)}/s`], ...values, ["outcome", outcome]] as const;
    return rows.map(([name, value]) => ({ server: null, name, value, isHighlighted: false }));
  }

  /** Makes the plot focusable; the arrow keys select the previous or next trial. */
  private addKeyboardControl(): void {
    const { over } = this.plot;
    over.tabIndex = 0;
    over.setAttribute("role", "img");
    over.setAttribute("aria-label", `${this.view.title}; the values are in the table below`);
    over.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const last = this.trials.length - 1;
      const from = this.selected ?? (step > 0 ? -1 : last + 1);
      this.select(Math.min(last, Math.max(0, from + step)));
    });
    for (const event of ["blur", "mouseleave"]) over.addEventListener(event, () => this.select(null));
  }
}

/** About `count` integer ticks. */
function integerTicks(low: number, high: number, count: number): number[] {
  const step = Math.max(1, Math.ceil((high - low) / Math.max(1, count)));
  const first = Math.ceil(Math.max(1, low) / step) * step;
  return Array.from({ length: Math.max(0, Math.floor((high - first) / step) + 1) }, (_, index) => first + index * step);
}

/** Leaves out ticks whose labels would overlap. */
function withoutOverlaps(plot: uPlot, ticks: readonly number[]): number[] {
  let nextFree = -Infinity;
  return ticks.filter((tick) => {
    const left = plot.valToPos(tick, "x");
    const half = 4 + 3.6 * formatTick(tick, "per_s").length;
    if (left - half < nextFree) return false;
    nextFree = left + half;
    return true;
  });
}
