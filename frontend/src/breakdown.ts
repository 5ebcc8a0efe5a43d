// The latency breakdown of the slowest requests: one stacked bar per server.
import type { PageBar, PageBars, PageBreakdown } from "./data";
import { format } from "./format";
import type { Store } from "./state";
import { swatch } from "./style";
import { Tooltip, type Row } from "./tooltip";

/** Colours of the parts, in the order of `parts`. */
const COLOURS = ["series-1", "series-3", "series-0", "series-2", "chart-muted"] as const;

export const totalOf = (bar: PageBar): number => bar.values_ns.reduce((sum, value) => sum + value, 0);

/** Width of each part as a fraction of the longest visible bar. The lengths of the bars are on a logarithmic axis
 * that starts at half the shortest one; each part has its share of its bar. */
export function sharesOf(bar: PageBar, shown: readonly PageBar[]): number[] {
  const totals = shown.map(totalOf).filter((total) => total > 0);
  const total = totalOf(bar);
  if (!total || !totals.length) return bar.values_ns.map(() => 0);
  const start = Math.min(...totals) / 2;
  const length = Math.log(total / start) / Math.log(Math.max(...totals) / start);
  return bar.values_ns.map((value) => (length * value) / total);
}

/** Each part with its value, then the total response time. */
export function rowsOf(breakdown: PageBreakdown, bar: PageBar): [string, string][] {
  const parts = breakdown.parts.map((part, index): [string, string] => [part, format(bar.values_ns[index] ?? null, "ns")]);
  return [...parts, ["response time", format(totalOf(bar), "ns")]];
}

function span(className: string, text = ""): HTMLElement {
  const element = document.createElement("span");
  element.className = className;
  element.textContent = text;
  return element;
}

export function legendOf(breakdown: PageBreakdown): HTMLElement {
  const legend = document.createElement("div");
  legend.className = "outcomes";
  breakdown.parts.forEach((part, index) => {
    const entry = document.createElement("span");
    const dot = span("dot");
    dot.style.background = `var(--${COLOURS[index] ?? "ink"})`;
    entry.append(dot, part);
    legend.append(entry);
  });
  return legend;
}

export function drawBars(breakdown: PageBreakdown, panel: PageBars, store: Store, target: HTMLElement): void {
  const shown = panel.bars.filter((bar) => !store.isHidden(bar.server));
  for (const bar of shown) target.append(makeBar(breakdown, bar, shown, store));
  if (!shown.length) target.append(span("empty", "all servers are hidden"));
}

function makeBar(breakdown: PageBreakdown, bar: PageBar, shown: readonly PageBar[], store: Store): HTMLElement {
  const name = store.servers[bar.server] ?? "";
  const line = document.createElement("div");
  line.className = "bar";
  line.dataset.server = String(bar.server);
  const label = span("name");
  label.append(swatch(bar.server), name);
  const track = span("parts");
  sharesOf(bar, shown).forEach((share, index) => {
    const part = span("part");
    part.style.width = `${100 * share}%`;
    part.style.background = `var(--${COLOURS[index] ?? "ink"})`;
    track.append(part);
  });
  line.append(label, track, span("value", format(totalOf(bar), "ns")));
  addTooltip(line, track, name, rowsOf(breakdown, bar));
  return line;
}

/** Shows the parts in a tooltip on hover and focus, and describes them to screen readers. */
function addTooltip(line: HTMLElement, track: HTMLElement, name: string, rows: [string, string][]): void {
  const tooltip = new Tooltip(line);
  const show = (left: number): void =>
    tooltip.show(name, rows.map(([part, value]): Row => ({ server: null, name: part, value, isHighlighted: false })), left, 12);
  line.tabIndex = 0;
  line.setAttribute("role", "img");
  line.setAttribute("aria-label", `${name}: ${rows.map(([part, value]) => `${part} ${value}`).join(", ")}`);
  line.addEventListener("mousemove", (event) => show(event.clientX - line.getBoundingClientRect().left));
  line.addEventListener("focus", () => show(track.offsetLeft));
  for (const event of ["mouseleave", "blur"]) line.addEventListener(event, () => tooltip.hide());
}
