// Custom drawing for uPlot: bands, runs, the rail, limits and the line of equality.
import type uPlot from "uplot";
import type { PagePanel, PageRun, PageSeries } from "./data";
import { railCentre, type Range } from "./scales";
import { colourOf, markerPath, seriesColour, styleOf } from "./style";

/** Opacity of a series: reduced if another server is highlighted. */
export function seriesOpacity(server: number, highlighted: number | null): number {
  return highlighted === null || highlighted === server ? 1 : 0.14;
}

export interface Scene {
  plot: uPlot;
  panel: PagePanel;
  shown: readonly PageSeries[];
  range: Range;
  highlighted: number | null;
}

const x = (scene: Scene, index: number): number =>
  scene.plot.valToPos(scene.panel.x[index] ?? 0, "x", true);
const y = (scene: Scene, value: number): number => scene.plot.valToPos(value, "y", true);
const pixels = (css: number): number => css * (window.devicePixelRatio || 1);

/** Clips the drawing to the plot area plus a margin, and restores the canvas state. */
function drawClipped(scene: Scene, margin: number, draw: (canvas: CanvasRenderingContext2D) => void): void {
  const { ctx, bbox } = scene.plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left - margin, bbox.top - margin, bbox.width + 2 * margin, bbox.height + 2 * margin);
  ctx.clip();
  // uPlot leaves the dash of the last series.
  ctx.setLineDash([]);
  draw(ctx);
  ctx.restore();
}

/** Draws everything behind the lines. */
export function drawBehind(scene: Scene): void {
  drawClipped(scene, 0, (canvas) => {
    drawRail(canvas, scene);
    for (const series of scene.shown) drawBand(canvas, scene, series);
    for (const line of scene.panel.lines) drawLimit(canvas, scene, line.value, line.label);
    if (scene.panel.has_equality) drawEquality(canvas, scene);
  });
}

/** Draws everything in front of the lines. */
export function drawFront(scene: Scene): void {
  drawClipped(scene, pixels(6), (canvas) => {
    for (const series of scene.shown) {
      canvas.globalAlpha = seriesOpacity(series.server, scene.highlighted);
      for (const run of series.runs) drawRun(canvas, scene, series.server, run);
    }
    drawInfiniteRuns(canvas, scene);
  });
}

function drawRail(canvas: CanvasRenderingContext2D, scene: Scene): void {
  const { high, top } = scene.range;
  if (top <= high) return;
  const { bbox } = scene.plot;
  canvas.fillStyle = colourOf("chart-rail");
  canvas.fillRect(bbox.left, bbox.top, bbox.width, y(scene, high) - bbox.top);
  label(canvas, "infinite, failed", bbox.left + pixels(6), y(scene, railCentre(scene.range)) + pixels(4));
}

function label(canvas: CanvasRenderingContext2D, text: string, left: number, base: number): void {
  canvas.fillStyle = colourOf("chart-muted");
  canvas.font = `${pixels(11)}px system-ui, sans-serif`;
  canvas.textAlign = "left";
  canvas.fillText(text, left, base);
}

function drawBand(canvas: CanvasRenderingContext2D, scene: Scene, series: PageSeries): void {
  const known = series.bands.flatMap((band, index) => (band ? [{ index, band }] : []));
  if (!known.length) return;
  // With many series, overlapping bands would become opaque.
  const share = Math.min(1, 6 / scene.shown.length);
  canvas.globalAlpha = 0.13 * share * seriesOpacity(series.server, scene.highlighted);
  canvas.fillStyle = seriesColour(series.server);
  canvas.beginPath();
  for (const { index, band } of known) canvas.lineTo(x(scene, index), y(scene, band[1]));
  for (const { index, band } of [...known].reverse()) {
    canvas.lineTo(x(scene, index), y(scene, band[0]));
  }
  canvas.fill();
  canvas.globalAlpha = 1;
}

function dashedLine(canvas: CanvasRenderingContext2D, points: readonly [number, number][]): void {
  canvas.strokeStyle = colourOf("chart-muted");
  canvas.lineWidth = pixels(1);
  canvas.setLineDash([pixels(5), pixels(4)]);
  canvas.beginPath();
  for (const [left, top] of points) canvas.lineTo(left, top);
  canvas.stroke();
  canvas.setLineDash([]);
}

function drawLimit(canvas: CanvasRenderingContext2D, scene: Scene, value: number, name: string): void {
  const { left, width } = scene.plot.bbox;
  const top = y(scene, value);
  dashedLine(canvas, [[left, top], [left + width, top]]);
  label(canvas, name, left + pixels(6), top - pixels(4));
}

function drawEquality(canvas: CanvasRenderingContext2D, scene: Scene): void {
  const { plot } = scene;
  const { min = 0, max = 1 } = plot.scales.x ?? {};
  // The line is curved if only one axis is logarithmic, so draw it in small steps.
  const steps = Array.from({ length: 41 }, (_, index) => (min ?? 0) + ((max ?? 1) - (min ?? 0)) * (index / 40));
  const points = steps.map((value): [number, number] => [plot.valToPos(value, "x", true), y(scene, value)]);
  dashedLine(canvas, points);
  const last = scene.panel.x[scene.panel.x.length - 1] ?? 0;
  canvas.save();
  const text = "goodput = offered rate";
  canvas.font = `${pixels(11)}px system-ui, sans-serif`;
  const width = canvas.measureText(text).width;
  label(canvas, text, plot.valToPos(last, "x", true) - width - pixels(14), y(scene, last) - pixels(2));
  canvas.restore();
}

function marker(
  canvas: CanvasRenderingContext2D,
  server: number,
  at: readonly [number, number],
  isHollow: boolean,
): void {
  const outline = new Path2D(markerPath(styleOf(server).marker, at[0], at[1], pixels(4)));
  canvas.lineWidth = pixels(1.6);
  canvas.strokeStyle = canvas.fillStyle = seriesColour(server);
  if (isHollow) canvas.fillStyle = colourOf("page");
  canvas.fill(outline);
  canvas.stroke(outline);
}

function drawRun(canvas: CanvasRenderingContext2D, scene: Scene, server: number, run: PageRun): void {
  if (run.value === null || run.is_endless) return;
  const left = x(scene, run.x);
  const [low, high] = run.interval ?? [run.low, run.value];
  if (low !== null) {
    whisker(canvas, server, left, [y(scene, low), y(scene, high ?? scene.range.high)]);
  }
  const top = y(scene, run.value);
  marker(canvas, server, [left, top], run.status === "invalid");
  if (run.status !== "disturbed") return;
  canvas.strokeStyle = colourOf("chart-alert");
  canvas.stroke(new Path2D(markerPath("circle", left, top, pixels(7.5))));
}

function whisker(
  canvas: CanvasRenderingContext2D,
  server: number,
  left: number,
  ends: readonly [number, number],
): void {
  canvas.strokeStyle = seriesColour(server);
  canvas.lineWidth = pixels(1);
  canvas.beginPath();
  canvas.moveTo(left, ends[0]);
  canvas.lineTo(left, ends[1]);
  canvas.stroke();
}

/** Draws runs without a finite value side by side on the rail; whiskers show lower bounds. */
function drawInfiniteRuns(canvas: CanvasRenderingContext2D, scene: Scene): void {
  const isRepeated = scene.shown.some((series) => series.runs.some((run) => run.run > 1));
  const step = pixels(isRepeated ? 22 : 14);
  for (const [index] of scene.panel.x.entries()) {
    const groups = scene.shown.flatMap((series) => infiniteRunsAt(series, index));
    if (!groups.length) continue;
    const first = firstOnRail(scene, x(scene, index), groups.length * step);
    groups.forEach((group, slot) => drawGroup(canvas, scene, group, first + slot * step));
  }
}

/** Position of the first of several markers, centred on their load but inside the plot area. */
function firstOnRail(scene: Scene, middle: number, width: number): number {
  const { left, width: available } = scene.plot.bbox;
  const first = Math.min(middle - width / 2, left + available - width);
  return Math.max(left, first) + pixels(7);
}

interface Group {
  server: number;
  status: PageRun["status"];
  runs: PageRun[];
}

function infiniteRunsAt(series: PageSeries, index: number): Group[] {
  const groups: Group[] = [];
  for (const run of series.runs) {
    if (!run.is_endless || run.x !== index) continue;
    const status = run.status === "disturbed" ? "valid" : run.status;
    const group = groups.find((candidate) => candidate.status === status);
    if (group) group.runs.push(run);
    else groups.push({ server: series.server, status, runs: [run] });
  }
  return groups;
}

function drawGroup(canvas: CanvasRenderingContext2D, scene: Scene, group: Group, left: number): void {
  const rail = y(scene, railCentre(scene.range));
  canvas.globalAlpha = seriesOpacity(group.server, scene.highlighted);
  const lows = group.runs.flatMap((run) => (run.low === null ? [] : [run.low]));
  if (lows.length) {
    canvas.setLineDash([pixels(1.5), pixels(3)]);
    whisker(canvas, group.server, left, [y(scene, Math.min(...lows)), y(scene, scene.range.high)]);
    canvas.setLineDash([]);
  }
  if (group.status === "failed") {
    canvas.strokeStyle = seriesColour(group.server);
    canvas.lineWidth = pixels(2);
    canvas.stroke(new Path2D(markerPath("cross", left, rail, pixels(4.5))));
  } else marker(canvas, group.server, [left, rail], group.status === "invalid");
  if (group.runs.length > 1) label(canvas, String(group.runs.length), left + pixels(6), rail + pixels(4));
}
