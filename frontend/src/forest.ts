// The comparisons as a forest plot: one row per pair, with its factor and confidence interval on a
// logarithmic axis.
import type { PageForest } from "./data";
import { threeDigits } from "./format";

const TICKS: readonly [number, readonly number[]][] = [
  [2, [0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.3, 1.4, 1.5]],
  [16, [0.1, 0.25, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 3, 4, 6, 8]],
  [Infinity, [0.001, 0.01, 0.1, 0.3, 1, 3, 10, 30, 100, 1000]],
];

/** Maps factors to positions from 0 to 1 on a logarithmic axis, and selects the ticks. */
export function forestAxis(forest: PageForest): { at: (factor: number) => number; ticks: number[] } {
  const ends = forest.rows.flatMap((row) => [row.low, row.high]).filter((end) => end > 0);
  const low = Math.min(...ends, forest.margin[0]) / 1.03;
  const high = Math.max(...ends, forest.margin[1]) * 1.03;
  const span = Math.log(high / low);
  const at = (factor: number): number =>
    Math.min(1, Math.max(0, Math.log(Math.max(factor, low) / low) / span));
  const candidates = TICKS.find(([maxSpan]) => high / low <= maxSpan)?.[1] ?? [1];
  const ticks: number[] = [];
  // 1 always has a tick; the others only if their labels do not overlap.
  for (const tick of [1, ...candidates]) {
    const isFree = ticks.every((other) => Math.abs(at(other) - at(tick)) > 0.07);
    if (tick >= low && tick <= high && isFree) ticks.push(tick);
  }
  return { at, ticks: ticks.sort((a, b) => a - b) };
}

function part(className: string, left: number, right?: number): HTMLElement {
  const element = document.createElement("span");
  element.className = className;
  element.style.left = `${100 * left}%`;
  if (right !== undefined) element.style.width = `${100 * (right - left)}%`;
  return element;
}

function text(className: string, content: string): HTMLElement {
  const element = document.createElement("span");
  element.className = className;
  element.textContent = content;
  return element;
}

export function drawForest(forest: PageForest, target: HTMLElement): void {
  const { at, ticks } = forestAxis(forest);
  const title = document.createElement("div");
  title.className = "panel-title";
  title.textContent = forest.title;
  target.append(title);
  for (const row of forest.rows) {
    const line = document.createElement("div");
    line.className = `factor${row.is_chance ? " chance" : ""}${row.is_finding ? " finding" : ""}`;
    const track = document.createElement("span");
    track.className = "track";
    track.append(
      part("margin", at(forest.margin[0]), at(forest.margin[1])),
      part("one", at(1)),
      part("interval", at(row.low), at(row.high)),
      part("point", at(row.value)),
    );
    const interval = `[${threeDigits(row.low)}, ${threeDigits(row.high)}]`;
    line.append(text("name", row.name), track, text("value", `${threeDigits(row.value)}× ${interval}`));
    target.append(line);
  }
  const line = document.createElement("div");
  line.className = "factor axis";
  const track = document.createElement("span");
  track.className = "track";
  for (const tick of ticks) {
    const mark = part("tick", at(tick));
    mark.textContent = `${tick}×`;
    track.append(mark);
  }
  line.append(text("name", ""), track, text("value", ""));
  target.append(line);
}
