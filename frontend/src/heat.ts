// The heatmap of a trial: responses by time and response time, with a mark on each column in which
// slow requests coincided with an event.
import type uPlot from "uplot";
import type { PageHeat } from "./data";
import { format } from "./format";
import { colourOf } from "./style";

/** Opacity range of bins that contain responses. */
const MIN_OPACITY = 0.1;
const MAX_OPACITY = 0.85;
const pixels = (css: number): number => css * (window.devicePixelRatio || 1);

/** Opacity of a bin, on a logarithmic scale up to the largest count. */
export function opacityOf(count: number, largest: number): number {
  if (count <= 0) return 0;
  const share = largest > 1 ? Math.log(count) / Math.log(largest) : 1;
  return MIN_OPACITY + (MAX_OPACITY - MIN_OPACITY) * share;
}

export function largestOf(heat: PageHeat): number {
  return Math.max(0, ...heat.counts.map((column) => Math.max(0, ...column)));
}

export interface Bin {
  column: number;
  row: number;
}

/** The bin at a time and a response time, or null outside the heatmap. */
export function binAt(heat: PageHeat, seconds: number, ns: number): Bin | null {
  const column = heat.ends_s.findIndex((end) => seconds < end);
  const upper = heat.edges_ns.findIndex((edge) => ns < edge);
  return seconds < 0 || column < 0 || upper < 1 ? null : { column, row: upper - 1 };
}

/** Start of a column, in seconds. */
function columnStart(heat: PageHeat, column: number): number {
  return column > 0 ? (heat.ends_s[column - 1] ?? 0) : 0;
}

/** Name of a column, identical to the first field of its row in the table. */
export function columnName(heat: PageHeat, column: number): string {
  return `${columnStart(heat, column).toFixed(1)} s to ${(heat.ends_s[column] ?? 0).toFixed(1)} s`;
}

/** Tooltip rows of a bin: its column, response time and count, and any coinciding event. */
export function rowsAt(heat: PageHeat, bin: Bin): [string, string][] {
  const { column, row } = bin;
  const count = format(heat.counts[column]?.[row] ?? 0, "count");
  const rows: [string, string][] = [[columnName(heat, column), `up to ${format(heat.edges_ns[row + 1], "ns")}: ${count}`]];
  const mark = heat.marks.find((candidate) => candidate.column === column);
  if (mark) rows.push(["coincided with", mark.text]);
  return rows;
}

/** Draws the bins, behind the lines of the response times. */
export function drawHeat(plot: uPlot, heat: PageHeat): void {
  const { ctx, bbox } = plot;
  const largest = largestOf(heat);
  const x = (seconds: number): number => Math.round(plot.valToPos(seconds, "x", true));
  const y = (ns: number): number => Math.round(plot.valToPos(ns, "y", true));
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colourOf("chart-muted");
  heat.counts.forEach((counts, column) => {
    const left = x(columnStart(heat, column));
    const width = x(heat.ends_s[column] ?? 0) - left;
    counts.forEach((count, row) => {
      ctx.globalAlpha = opacityOf(count, largest);
      const top = y(heat.edges_ns[row + 1] ?? 1);
      if (count > 0) ctx.fillRect(left, top, width, y(heat.edges_ns[row] ?? 1) - top);
    });
  });
  ctx.restore();
}

/** Draws a triangle at the upper edge of each marked column, above the lines. */
export function drawMarks(plot: uPlot, heat: PageHeat): void {
  const { ctx, bbox } = plot;
  const size = pixels(4.5);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colourOf("chart-alert");
  for (const { column } of heat.marks) {
    const middle = (columnStart(heat, column) + (heat.ends_s[column] ?? 0)) / 2;
    const left = plot.valToPos(middle, "x", true);
    ctx.beginPath();
    ctx.moveTo(left - size, bbox.top + 1);
    ctx.lineTo(left + size, bbox.top + 1);
    ctx.lineTo(left, bbox.top + 1 + 1.6 * size);
    ctx.fill();
  }
  ctx.restore();
}
