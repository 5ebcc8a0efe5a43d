// The live page: shows the running measurement from server-sent events, and navigates to the report
// at the end.
import uPlot from "uplot";
import type { LiveFrame, Unit } from "./data";
import { axis, verticalAxis } from "./panel";
import { colourOf } from "./style";

const HEIGHT = 200;
/** Points per chart: ten minutes of frames, two per second. Same as MAX_FRAMES of the server. */
const MAX_POINTS = 1200;
/** Same as MAX_LINES of the server (wsgiload/cli/_live_page.py). */
const MAX_LINES = 1000;

type Values = (number | null)[];

/** The frames of the current trial that contain a measured value. */
export class History {
  private trial = "";
  private frames: LiveFrame[] = [];

  /** Adds frames of one trial. */
  add(frames: readonly LiveFrame[]): void {
    const trial = frames[0]?.trial ?? this.trial;
    if (trial !== this.trial) this.frames = [];
    this.trial = trial;
    const measured = frames.filter(({ achieved_per_s, p50_ns, cpu_cores }) => achieved_per_s !== null || p50_ns !== null || cpu_cores !== null);
    this.frames = [...this.frames, ...measured].slice(-MAX_POINTS);
  }

  /** Seconds since the first frame. */
  get seconds(): number[] {
    const start = this.frames[0]?.at_s ?? 0;
    return this.frames.map(({ at_s }) => at_s - start);
  }

  of(figure: Figure): Values {
    return this.frames.map((frame) => frame[figure]);
  }
}

type Figure = "offered_per_s" | "achieved_per_s" | "p50_ns" | "p99_ns" | "cpu_cores" | "cpu_limit";

interface ChartKind {
  title: string;
  unit: Unit;
  isLog: boolean;
  lines: readonly [Figure, string][];
}

const CHARTS: readonly ChartKind[] = [
  { title: "Requests per second", unit: "per_s", isLog: false, lines: [["offered_per_s", "offered"], ["achieved_per_s", "achieved"]] },
  { title: "Latency in the measurement so far", unit: "ns", isLog: true, lines: [["p50_ns", "p50"], ["p99_ns", "p99"]] },
  { title: "CPU cores used by the server", unit: "cores", isLog: false, lines: [["cpu_cores", "used"], ["cpu_limit", "limit"]] },
];

/** The range of the vertical axis, even without data. */
export function rangeFor(isLog: boolean, low: number | null, high: number | null): [number, number] {
  if (isLog) return low && high ? [low / 1.5, high * 1.6] : [1e6, 1e9];
  return [0, 1.12 * (high || 1)];
}

/** A line chart over the seconds of one trial. */
class LiveChart {
  private readonly plot: uPlot;

  constructor(target: HTMLElement, private readonly kind: ChartKind) {
    const title = document.createElement("p");
    title.className = "panel-title";
    title.textContent = kind.title;
    const container = document.createElement("div");
    container.setAttribute("role", "img");
    container.setAttribute("aria-label", `${kind.title}; the newest values are above`);
    target.append(title, container);
    this.plot = new uPlot(this.options(container), [[], ...kind.lines.map(() => [])], container);
    new ResizeObserver(() => this.plot.setSize({ width: widthOf(target), height: HEIGHT })).observe(target);
  }

  draw(history: History): void {
    this.plot.setData([history.seconds, ...this.kind.lines.map(([figure]) => history.of(figure))]);
  }

  redraw(): void {
    this.plot.redraw();
  }

  private options(container: HTMLElement): uPlot.Options {
    const { kind } = this;
    return {
      width: widthOf(container),
      height: HEIGHT,
      legend: { live: false },
      cursor: { show: false },
      scales: {
        x: { time: false, range: (_plot, _low, high) => [0, Math.max(5, high || 0)] },
        y: { distr: kind.isLog ? 3 : 1, range: (_plot, low, high) => rangeFor(kind.isLog, low, high) },
      },
      series: [
        { label: "time" },
        ...kind.lines.map(([, label], number): uPlot.Series => ({
          label,
          stroke: () => colourOf(`series-${number}`),
          width: 1.8,
          dash: number ? [6, 4] : [],
          points: { show: false },
        })),
      ],
      axes: [
        axis({ size: 30, values: (_plot, splits) => splits.map((second) => `${second} s`) }),
        verticalAxis(kind.unit, HEIGHT),
      ],
    };
  }
}

function widthOf(element: HTMLElement): number {
  return Math.max(200, element.clientWidth);
}

function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element;
}

function makeElement(name: string, text: string): HTMLElement {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}

class LivePage {
  private readonly history = new History();
  private readonly charts = CHARTS.map((kind) => {
    const panel = document.createElement("div");
    panel.className = "panel";
    byId("live-charts").append(panel);
    return new LiveChart(panel, kind);
  });

  /** Adds the frames since the last ones; a page that was opened late receives those of the whole trial. */
  addFrames(frames: readonly LiveFrame[]): void {
    const frame = frames[frames.length - 1];
    if (!frame) return;
    this.setState("measuring");
    byId("live-rows").replaceChildren(
      ...frame.rows.flatMap(([label, text]) => [makeElement("dt", label), makeElement("dd", text)]),
    );
    this.history.add(frames);
    this.charts.forEach((chart) => chart.draw(this.history));
  }

  redraw(): void {
    this.charts.forEach((chart) => chart.redraw());
  }

  addLine(text: string): void {
    const lines = byId("live-lines");
    lines.append(makeElement("li", text));
    if (lines.childElementCount > MAX_LINES) lines.firstElementChild?.remove();
  }

  end(text: string): void {
    this.setState("ended");
    const result = byId("live-result");
    result.textContent = text;
    result.hidden = !text;
  }

  setState(state: string): void {
    const element = byId("live-state");
    if (element.textContent !== state) element.textContent = state;
  }
}

/** Follows the command if this is a live page. Returns whether it is one. */
export function followLive(): boolean {
  if (!document.getElementById("live")) return false;
  const page = new LivePage();
  const source = new EventSource("/events");
  const listen = (name: string, handle: (data: unknown) => void): void => {
    source.addEventListener(name, (event) => handle(JSON.parse((event as MessageEvent<string>).data)));
  };
  listen("frames", (data) => page.addFrames(data as LiveFrame[]));
  listen("line", (data) => page.addLine(data as string));
  listen("ended", (data) => {
    source.close();
    page.end(data as string);
  });
  listen("report", () => {
    source.close();
    location.replace("/report");
  });
  source.addEventListener("error", () => {
    // The command has exited. Do not reconnect: another process may own the port now.
    source.close();
    page.setState("ended: the command no longer responds");
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page.redraw());
  return true;
}
