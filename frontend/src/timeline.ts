// One trial over time: response times, and below them the server's resource use on the same time
// axis.
import uPlot from "uplot";
import type { PageHeat, PageService, PageTimeline, Unit } from "./data";
import { format } from "./format";
import { binAt, drawHeat, drawMarks, rowsAt } from "./heat";
import { axis, verticalAxis, type Plot } from "./panel";
import { colourOf, type Role } from "./style";
import { Tooltip, type Row } from "./tooltip";

type Values = (number | null)[];
type Colour = Role | `series-${number}`;

interface Line {
  name: string;
  values: Values;
  colour: Colour;
  isStepped?: boolean;
  isFilled?: boolean;
  isPoints?: boolean;
}

interface Strip {
  title: string;
  unit: Unit;
  height: number;
  isLog: boolean;
  /** Ends of the sampling intervals, or middles of the report intervals. */
  times: number[];
  lines: Line[];
  limit: number | null;
  heat?: PageHeat | null;
}

/** Repeats the first value, so that the stepped line starts at 0. */
function repeatFirst(values: readonly (number | null)[]): Values {
  return [...values.slice(0, 1), ...values];
}

/** The strips for which there is data. */
export function stripsOf(cell: PageTimeline): Strip[] {
  const { uses } = cell;
  // Each value describes the interval that ends at its time; the first interval starts at 0.
  const ends = uses.ends_s.length ? [0, ...uses.ends_s] : [];
  const stepped = (values: Values, name: string, colour: Colour): Line[] => [
    { name, values, colour, isStepped: true },
  ];
  const stepsOf = (values: readonly (number | null)[], name: string, colour: Colour): Line[] =>
    stepped(repeatFirst(values), name, colour);
  const strips: Strip[] = [
    {
      title: "response time",
      unit: "ns",
      height: cell.heat ? 240 : 190,
      isLog: true,
      heat: cell.heat,
      times: [...cell.middles_s],
      lines: [
        { name: "max", values: [...cell.max_ns], colour: "ink", isPoints: true },
        { name: "p99", values: [...cell.p99_ns], colour: "series-0" },
        { name: "p50", values: [...cell.p50_ns], colour: "series-2" },
      ],
      limit: null,
    },
    {
      title: "failed requests",
      unit: "count",
      height: 80,
      isLog: false,
      times: [...cell.middles_s],
      lines: stepped([...cell.failed], "failed", "series-1"),
      limit: null,
    },
    {
      title: "CPU cores",
      unit: "cores",
      height: 100,
      isLog: false,
      times: ends,
      lines: stepsOf(uses.cores, "CPU", "series-4"),
      limit: cell.cpu_limit,
    },
    ...cell.services.map(serviceStrip),
    {
      title: "CPU periods throttled",
      unit: "ratio",
      height: 80,
      isLog: false,
      times: ends,
      lines: [
        {
          name: "throttled",
          values: repeatFirst(uses.throttled_ratio),
          colour: "chart-alert",
          isStepped: true,
          isFilled: true,
        },
      ],
      limit: null,
    },
    {
      title: "memory",
      unit: "bytes",
      height: 80,
      isLog: false,
      times: ends,
      lines: stepsOf(uses.memory_bytes, "memory", "series-3"),
      limit: cell.memory_limit_bytes,
    },
    {
      title: "accept queue",
      unit: "count",
      height: 80,
      isLog: false,
      times: ends,
      lines: stepsOf(uses.listen_queue, "waiting", "series-5"),
      limit: null,
    },
  ];
  return strips.filter(hasData);
}

/** CPU use of a supporting service, with its own sampling times. */
function serviceStrip(service: PageService): Strip {
  return {
    title: `CPU cores used by ${service.name}`,
    unit: "cores",
    height: 80,
    isLog: false,
    times: service.ends_s.length ? [0, ...service.ends_s] : [],
    lines: [{ name: service.name, values: repeatFirst(service.cores), colour: "series-6", isStepped: true }],
    limit: null,
  };
}

/** Whether the strip has data; a count that is always 0 needs no strip. */
function hasData(strip: Strip): boolean {
  const values = strip.lines.flatMap((line) => line.values).filter((value) => value !== null);
  return values.length > 0 && (strip.unit !== "count" || values.some((value) => value > 0));
}

function rangeOf(strip: Strip): [number, number] {
  const values = strip.lines.flatMap((line) => line.values).filter((value) => value !== null);
  if (strip.isLog) {
    // Include all bins of the heatmap, with room for its marks above the highest bin.
    const positive = [...values, ...(strip.heat?.edges_ns ?? [])].filter((value) => value > 0);
    return positive.length ? [Math.min(...positive) / 1.4, Math.max(...positive) * 1.4] : [1e6, 1e9];
  }
  const top = Math.max(0, ...values, strip.limit ?? 0);
  return [0, strip.unit === "ratio" ? 1.05 : top * 1.15 || 1];
}

export class TimelinePlot implements Plot {
  private readonly plots: uPlot[];

  constructor(
    private readonly cell: PageTimeline,
    target: HTMLElement,
    width: number,
  ) {
    const strips = stripsOf(cell);
    this.plots = strips.map((strip, index) => {
      const title = document.createElement("div");
      title.className = "panel-title";
      title.append(strip.title, ...(strip.lines.length > 1 ? legend(strip) : []));
      const holder = document.createElement("div");
      target.append(title, holder);
      return this.draw(strip, holder, width, index === strips.length - 1);
    });
  }

  resize(width: number): void {
    for (const plot of this.plots) plot.setSize({ width, height: plot.height });
  }

  dim(): void {
    // A timeline has only one server.
  }

  resetZoom(): void {
    for (const plot of this.plots) plot.setScale("x", { min: 0, max: this.cell.length_s });
  }

  destroy(): void {
    for (const plot of this.plots) plot.destroy();
  }

  private draw(strip: Strip, holder: HTMLElement, width: number, isLast: boolean): uPlot {
    let tooltip: Tooltip | null = null;
    const limit = strip.limit;
    const options: uPlot.Options = {
      width,
      height: strip.height + (isLast ? 40 : 0),
      padding: [6, 12, isLast ? 0 : 4, 0],
      legend: { show: false },
      cursor: {
        sync: { key: this.cell.name, scales: ["x", null] },
        points: { show: false },
        drag: { x: true, y: false, dist: 8 },
      },
      scales: {
        x: { time: false, range: (_plot, min, max) => this.xRange(strip, min, max) },
        y: { distr: strip.isLog ? 3 : 1, range: () => rangeOf(strip) },
      },
      axes: [
        axis({ show: isLast, label: "seconds since the start, by scheduled send time", size: 28 }),
        verticalAxis(strip.unit, strip.height),
      ],
      series: [{}, ...strip.lines.map(series)],
      hooks: {
        drawAxes: [
          (plot) => {
            if (strip.heat) drawHeat(plot, strip.heat);
            else if (strip.isLog) this.shadeThrottling(plot);
            if (limit !== null) drawLimit(plot, limit);
          },
        ],
        draw: [(plot) => strip.heat && drawMarks(plot, strip.heat)],
        setCursor: [(plot) => tooltip && showValues(tooltip, plot, strip)],
      },
    };
    const data = [strip.times, ...strip.lines.map((line) => line.values)];
    const plot = new uPlot(options, data as uPlot.AlignedData, holder);
    tooltip = new Tooltip(plot.over);
    plot.over.addEventListener("mouseleave", () => tooltip?.hide());
    return plot;
  }

  /** The whole measurement, unless the reader zoomed in. */
  private xRange(strip: Strip, min: number, max: number): [number, number] {
    const isWhole = min <= (strip.times[0] ?? 0) && max >= (strip.times[strip.times.length - 1] ?? 0);
    return isWhole ? [0, this.cell.length_s] : [min, max];
  }

  /** Shades throttled periods behind the response times, to show where slow requests coincide. */
  private shadeThrottling(plot: uPlot): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.fillStyle = colourOf("chart-alert");
    let start = 0;
    this.cell.uses.ends_s.forEach((end, index) => {
      ctx.globalAlpha = 0.28 * (this.cell.uses.throttled_ratio[index] ?? 0);
      const left = plot.valToPos(start, "x", true);
      const right = plot.valToPos(end, "x", true);
      if (ctx.globalAlpha > 0) ctx.fillRect(left, bbox.top, right - left, bbox.height);
      start = end;
    });
    ctx.restore();
  }
}

function series(line: Line): uPlot.Series {
  const stepped = uPlot.paths.stepped?.({ align: -1 });
  return {
    stroke: () => colourOf(line.colour),
    width: line.isPoints || line.isFilled ? 0 : 1.6,
    fill: line.isFilled ? () => `${colourOf(line.colour)}66` : undefined,
    paths: line.isStepped ? stepped : undefined,
    points: line.isPoints
      ? { show: true, size: 4, fill: () => colourOf(line.colour) }
      : { show: !line.isStepped, size: 4.5, fill: () => colourOf(line.colour) },
  };
}

function legend(strip: Strip): HTMLElement[] {
  return strip.lines.map((line) => {
    const entry = document.createElement("span");
    entry.className = "entry";
    const dot = document.createElement("span");
    dot.className = "dot";
    dot.style.background = `var(--${line.colour})`;
    entry.append(dot, line.name);
    return entry;
  });
}

function drawLimit(plot: uPlot, limit: number): void {
  const { ctx, bbox } = plot;
  const top = plot.valToPos(limit, "y", true);
  const scale = window.devicePixelRatio || 1;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colourOf("chart-muted");
  ctx.setLineDash([5 * scale, 4 * scale]);
  ctx.lineWidth = scale;
  ctx.beginPath();
  ctx.moveTo(bbox.left, top);
  ctx.lineTo(bbox.left + bbox.width, top);
  ctx.stroke();
  ctx.font = `${10 * scale}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.fillText("limit", bbox.left + 6 * scale, top + 11 * scale);
  ctx.restore();
}

function showValues(tooltip: Tooltip, plot: uPlot, strip: Strip): void {
  const { idx, left = -1, top = 0 } = plot.cursor;
  const isHovered = plot.over.matches(":hover");
  if (!isHovered || idx === null || idx === undefined || left < 0) return tooltip.hide();
  const values = strip.lines.map((line): [string, string] => [line.name, format(line.values[idx], strip.unit)]);
  const rows = [...values, ...binRows(plot, strip, left, top)];
  tooltip.show(`${(strip.times[idx] ?? 0).toFixed(1)} s`, rows.map(asRow), left, top);
}

/** Tooltip rows of the heatmap bin at the pointer. */
function binRows(plot: uPlot, strip: Strip, left: number, top: number): [string, string][] {
  if (!strip.heat) return [];
  const bin = binAt(strip.heat, plot.posToVal(left, "x"), plot.posToVal(top, "y"));
  return bin ? rowsAt(strip.heat, bin) : [];
}

function asRow([name, value]: [string, string]): Row {
  return { server: null, name, value, isHighlighted: false };
}
