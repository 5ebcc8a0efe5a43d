// Ranges and ticks of axes, as pure functions.
import type { PagePanel, PageSeries } from "./data";

const RAIL_SHARE = 0.1;
const PADDING = 1.12;

export interface Range {
  low: number;
  high: number;
  /** Upper edge of the rail, which starts at `high`; equal to `high` without a rail. */
  top: number;
  isLog: boolean;
}

function* valuesOf(series: PageSeries, isInside: (x: number) => boolean): Generator<number> {
  for (const [index, median] of series.medians.entries()) {
    if (!isInside(index)) continue;
    if (median !== null) yield median;
    const band = series.bands[index];
    if (band) yield* band;
  }
  for (const run of series.runs) {
    if (!isInside(run.x)) continue;
    if (run.value !== null) yield run.value;
    if (run.low !== null) yield run.low;
  }
}

/** The range of all values in the viewport, plus the rail if any run lies on it. */
export function rangeOf(
  panel: PagePanel,
  shown: readonly PageSeries[],
  isLog: boolean,
  viewport: readonly [number, number],
): Range {
  const isInside = (index: number): boolean => {
    const x = panel.x[index] ?? 0;
    return x >= viewport[0] && x <= viewport[1];
  };
  const values = shown.flatMap((series) => [...valuesOf(series, isInside)]);
  const hasRail = shown.some((series) => series.runs.some((run) => run.is_endless));
  if (isLog) return logRange(values, hasRail);

  const limits = panel.lines.map((line) => line.value);
  const minHigh = panel.unit === "ratio" ? 0.01 : panel.unit === "count" ? 1 : 0;
  const high = Math.max(...values, ...limits, minHigh, 0) * PADDING || 1;
  return { low: 0, high, top: hasRail ? high / (1 - RAIL_SHARE) : high, isLog };
}

function logRange(values: readonly number[], hasRail: boolean): Range {
  const positive = values.filter((value) => value > 0);
  const [low, high] = positive.length
    ? [Math.min(...positive) / 1.5, Math.max(...positive) * 1.6]
    : [1e6, 1e9];
  const decades = Math.log10(high / low);
  const top = hasRail ? low * 10 ** (decades / (1 - RAIL_SHARE)) : high;
  return { low, high, top, isLog: true };
}

/** Vertical centre of the rail, as a value of the axis. */
export function railCentre(range: Range): number {
  return range.isLog ? Math.sqrt(range.high * range.top) : (range.high + range.top) / 2;
}

/** Round ticks of a logarithmic axis; the more decades, the fewer ticks per decade. */
export function logTicks(low: number, high: number): number[] {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const decades = Math.log10(high / low);
  const steps = decades <= 2 ? [1, 2, 5] : decades <= 3 ? [1, 3] : [1];
  const ticks: number[] = [];
  for (let power = first; power <= last; power += 1) {
    for (const step of steps) {
      const tick = step * 10 ** power;
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return ticks;
}

/** About `count` round ticks of a linear axis from 0; with `isBinary`, steps are powers of two. */
export function linearTicks(high: number, count: number, isBinary: boolean): number[] {
  const rawStep = high / Math.max(1, count);
  const base = isBinary ? 2 : 10;
  const power = base ** Math.floor(Math.log(rawStep) / Math.log(base));
  const steps = isBinary ? [1, 2] : [1, 2, 2.5, 5, 10];
  const step = power * (steps.find((candidate) => candidate * power >= rawStep) ?? base);
  return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, index) => index * step);
}
