// One panel of a chart, drawn with uPlot.
import uPlot from "uplot";
import type { PagePanel, PageRun, PageSeries, Unit } from "./data";
import { format, formatTick, MISSING } from "./format";
import { drawBehind, drawFront, seriesOpacity, type Scene } from "./marks";
import { linearTicks, logTicks, rangeOf, type Range } from "./scales";
import type { Store } from "./state";
import { colourOf, seriesColour, styleOf } from "./style";
import { Tooltip, type Row } from "./tooltip";

export interface Plot {
  resize(width: number): void;
  dim(): void;
  resetZoom(): void;
  destroy(): void;
}

export const FONT = "11px system-ui, sans-serif";

/** An axis in the colours of the page; `options` override the defaults. */
export function axis(options: uPlot.Axis): uPlot.Axis {
  return {
    stroke: () => colourOf("chart-muted"),
    font: FONT,
    labelFont: FONT,
    labelSize: 18,
    ticks: { stroke: () => colourOf("chart-grid"), width: 1, size: 4 },
    grid: { stroke: () => colourOf("chart-grid"), width: 1 },
    // By default, uPlot hides some ticks of a logarithmic axis.
    filter: (_plot, splits) => splits,
    ...options,
  };
}

export function verticalAxis(unit: Unit, height: number): uPlot.Axis {
  const count = Math.max(2, Math.floor(height / 55));
  return axis({
    size: 64,
    gap: 4,
    splits: (plot, _axis, low, high) =>
      plot.scales.y?.distr === 3 ? logTicks(low, high) : linearTicks(high, count, unit === "bytes"),
    values: (_plot, splits) => splits.map((value) => (value === null ? "" : formatTick(value, unit))),
  });
}

export class PanelPlot implements Plot {
  private readonly plot: uPlot;
  private readonly tooltip: Tooltip | undefined;
  private readonly shown: readonly PageSeries[];
  private readonly isLog: boolean;
  private range: Range;

  constructor(
    private readonly panel: PagePanel,
    private readonly store: Store,
    target: HTMLElement,
    size: { width: number; height: number },
    label: string,
  ) {
    this.shown = panel.series.filter((series) => !store.isHidden(series.server));
    this.isLog = panel.can_be_log && !store.current.isLinear;
    this.range = rangeOf(panel, this.shown, this.isLog, [-Infinity, Infinity]);
    const data = [[...panel.x], ...this.shown.map((series) => [...series.medians])];
    this.plot = new uPlot(this.options(size), data as uPlot.AlignedData, target);
    this.tooltip = new Tooltip(this.plot.over);
    this.addKeyboardControl(target, label);
  }

  resize(width: number): void {
    this.plot.setSize({ width, height: this.plot.height });
  }

  dim(): void {
    this.setOpacities(this.plot);
    this.plot.redraw(false);
  }

  resetZoom(): void {
    const [first, last] = this.xExtent();
    this.plot.setScale("x", { min: first, max: last });
  }

  destroy(): void {
    this.plot.destroy();
  }

  private xExtent(): [number, number] {
    return [this.panel.x[0] ?? 0, this.panel.x[this.panel.x.length - 1] ?? 1];
  }

  private options(size: { width: number; height: number }): uPlot.Options {
    return {
      ...size,
      padding: [8, 12, 0, 0],
      legend: { show: false },
      focus: { alpha: 1 },
      cursor: {
        sync: { key: this.panel.x_title },
        focus: { prox: 30 },
        points: { show: false },
        drag: { x: true, y: false, dist: 8 },
      },
      scales: { x: this.horizontalScale(), y: this.verticalScale() },
      axes: [this.horizontalAxis(), verticalAxis(this.panel.unit, size.height)],
      series: [{}, ...this.shown.map((series) => this.line(series))],
      hooks: {
        drawAxes: [() => drawBehind(this.scene())],
        draw: [() => drawFront(this.scene())],
        setSeries: [(plot, index) => this.highlightNearest(plot, index)],
        setCursor: [() => this.showTooltip()],
      },
    };
  }

  private line(series: PageSeries): uPlot.Series {
    return {
      stroke: () => seriesColour(series.server),
      width: 1.8,
      dash: [...styleOf(series.server).dash],
      alpha: seriesOpacity(series.server, this.store.highlighted),
      points: { show: this.panel.series.every(({ runs }) => runs.length === 0) },
      spanGaps: false,
    };
  }

  private horizontalScale(): uPlot.Scale {
    const isLog = this.panel.is_x_log;
    return {
      time: false,
      distr: isLog ? 3 : 1,
      range: (_plot, min, max) => {
        const [first, last] = this.xExtent();
        if (min > first || max < last) return [min, max];
        if (isLog) return [first / 1.2, last * 1.2];
        const margin = 0.08 * (last - first) || 0.5 * first || 1;
        return [first - margin, last + margin];
      },
    };
  }

  private verticalScale(): uPlot.Scale {
    return {
      distr: this.isLog ? 3 : 1,
      range: (plot) => {
        const { min, max } = plot.scales.x ?? {};
        this.range = rangeOf(this.panel, this.shown, this.isLog, [min ?? -Infinity, max ?? Infinity]);
        return [this.range.low, this.range.top];
      },
    };
  }

  private horizontalAxis(): uPlot.Axis {
    const { x, x_labels: names } = this.panel;
    return axis({
      label: this.panel.x_title,
      size: 30,
      splits: (plot) => {
        let nextFree = -Infinity;
        return x.filter((value, index) => {
          const left = plot.valToPos(value, "x");
          const half = 4 + 3.6 * (names[index]?.length ?? 0);
          if (left - half < nextFree) return false;
          nextFree = left + half;
          return true;
        });
      },
      values: (_plot, splits) => splits.map((value) => names[x.indexOf(value)] ?? ""),
    });
  }

  private scene(): Scene {
    const { panel, plot, range, shown } = this;
    return { plot, panel, range, shown, highlighted: this.store.highlighted };
  }

  private setOpacities(plot: uPlot): void {
    this.shown.forEach((series, index) => {
      const line = plot.series[index + 1];
      if (line) line.alpha = seriesOpacity(series.server, this.store.highlighted);
    });
  }

  /** Highlights the series next to the pointer in all charts. */
  private highlightNearest(plot: uPlot, index: number | null): void {
    const server = index === null ? null : (this.shown[index - 1]?.server ?? null);
    if (plot.over.matches(":hover")) this.store.hover(server);
    // uPlot resets the opacity of all series before it calls this hook.
    this.setOpacities(plot);
  }

  private showTooltip(): void {
    // uPlot moves the cursor once in its constructor, before the tooltip exists.
    if (!this.tooltip) return;
    const { idx, left = -1, top = -1 } = this.plot.cursor;
    const isActive = this.plot.over.matches(":hover, :focus");
    if (!isActive || idx === null || idx === undefined || left < 0) return this.tooltip.hide();
    const isRepeated = this.shown.some((series) => series.runs.some((run) => run.run > 1));
    const figure = `${this.panel.title}${isRepeated ? ", median over runs" : ""}`;
    const title = `${this.panel.x_labels[idx] ?? ""} · ${figure}`;
    this.tooltip.show(title, this.rowsAt(idx), this.plot.valToPos(this.panel.x[idx] ?? 0, "x"), top);
  }

  private rowsAt(index: number): Row[] {
    const rows = this.shown.map((series) => ({ series, value: series.medians[index] ?? null }));
    rows.sort((a, b) => (a.value ?? Infinity) - (b.value ?? Infinity));
    return rows.map(({ series, value }) => ({
      server: series.server,
      name: this.store.servers[series.server] ?? "",
      value: valueText(value, series.runs.filter((run) => run.x === index), this.panel.unit),
      isHighlighted: series.server === this.store.highlighted,
    }));
  }

  /** Makes the plot focusable; the arrow keys move the cursor. */
  private addKeyboardControl(target: HTMLElement, label: string): void {
    const { over } = this.plot;
    target.setAttribute("role", "group");
    target.setAttribute("aria-label", label);
    over.tabIndex = 0;
    over.setAttribute("role", "img");
    over.setAttribute("aria-label", `${this.panel.title}; the values are in the table below`);
    over.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const last = this.panel.x.length - 1;
      const next = Math.min(last, Math.max(0, (this.plot.cursor.idx ?? (step > 0 ? -1 : last + 1)) + step));
      const left = this.plot.valToPos(this.panel.x[next] ?? 0, "x");
      this.plot.setCursor({ left, top: over.clientHeight / 2 });
    });
    over.addEventListener("blur", () => this.tooltip?.hide());
    over.addEventListener("mouseleave", () => this.store.hover(null));
  }
}

/** "5.31 ms", or what the table shows in place of a missing value. */
export function valueText(value: number | null, runs: readonly PageRun[], unit: Unit): string {
  if (value !== null) return format(value, unit);
  if (runs.some((run) => run.status === "failed")) return "failed";
  if (runs.some((run) => run.status === "invalid")) return "invalid";
  const low = runs.map((run) => run.low).find((bound) => bound !== null);
  if (low !== undefined) return `>= ${format(low, unit)}`;
  return runs.some((run) => run.is_endless) ? "infinite" : MISSING;
}
