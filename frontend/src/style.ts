// Colour, dash and marker of each series, the same in every chart. Dashes and markers distinguish
// series for colour-blind readers.

export const COLOURS = 10;
const DASHES: readonly number[][] = [
  [],
  [7, 3],
  [2, 2.5],
  [9, 3, 2, 3],
  [5, 2, 1.5, 2, 1.5, 2],
  [13, 4],
  [3, 6],
];
// The cross is not in this list: it marks failures.
export const MARKERS = [
  "circle",
  "square",
  "triangle",
  "diamond",
  "down",
  "plus",
  "left",
  "right",
] as const;
export type Marker = (typeof MARKERS)[number] | "cross";

export interface Style {
  colour: number;
  dash: readonly number[];
  marker: Marker;
}

let runsPerServer = 1;

/** Sets how many consecutive series are runs of one server, and share its colour and marker. */
export function setRunsPerServer(runs: number): void {
  runsPerServer = runs;
}

/** With one run per server, the styles of the first 280 series are distinct. */
export function styleOf(series: number): Style {
  const server = Math.floor(series / runsPerServer);
  const dashIndex = runsPerServer > 1 ? series % runsPerServer : server;
  return {
    colour: server % COLOURS,
    dash: DASHES[dashIndex % DASHES.length] ?? [],
    marker: MARKERS[server % MARKERS.length] ?? "circle",
  };
}

export type Role = "good" | "bad" | "ink" | "chart-muted" | "chart-grid" | "chart-rail" | "chart-alert" | "page";

/** The current value of a colour, which differs between light, dark and print. */
export function colourOf(name: Role | `series-${number}`): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function seriesColour(server: number): string {
  return colourOf(`series-${styleOf(server).colour}`);
}

const CORNERS: Partial<Record<Marker, readonly [number, number][]>> = {
  square: [[-0.85, -0.85], [0.85, -0.85], [0.85, 0.85], [-0.85, 0.85]],
  triangle: [[0, -1.1], [1, 0.8], [-1, 0.8]],
  down: [[0, 1.1], [1, -0.8], [-1, -0.8]],
  left: [[-1.1, 0], [0.8, -1], [0.8, 1]],
  right: [[1.1, 0], [-0.8, -1], [-0.8, 1]],
  diamond: [[0, -1.2], [1.2, 0], [0, 1.2], [-1.2, 0]],
};
const STROKES: Partial<Record<Marker, readonly [number, number][]>> = {
  plus: [[-1.1, 0], [1.1, 0], [0, -1.1], [0, 1.1]],
  cross: [[-0.9, -0.9], [0.9, 0.9], [-0.9, 0.9], [0.9, -0.9]],
};

/** The outline of a marker as SVG path data, for SVG and for Path2D. */
export function markerPath(marker: Marker, x: number, y: number, size: number): string {
  const at = ([dx, dy]: readonly [number, number]): string => `${x + dx * size} ${y + dy * size}`;
  const corners = CORNERS[marker];
  if (corners) return `M${corners.map(at).join("L")}Z`;
  const strokes = STROKES[marker];
  if (strokes) return strokes.map((end, index) => `${index % 2 ? "L" : "M"}${at(end)}`).join("");
  return `M${x - size} ${y}a${size} ${size} 0 1 0 ${2 * size} 0a${size} ${size} 0 1 0 ${-2 * size} 0Z`;
}

/** The line and marker of a series as a small SVG, for legends and tooltips. */
export function swatch(server: number): Element {
  const { colour, dash, marker } = styleOf(server);
  const holder = document.createElement("template");
  // Safe markup: it contains only numbers from this module.
  holder.innerHTML =
    `<svg viewBox="0 0 34 12" class="look s${colour}" aria-hidden="true">` +
    `<path d="M1 6H33" stroke-dasharray="${dash.join(" ")}"/>` +
    `<path class="marker" d="${markerPath(marker, 17, 6, 3.6)}"/></svg>`;
  return holder.content.firstElementChild ?? document.createElement("span");
}
