// What the reader chose. It stands in the address, so that a link leads to the same view.

export interface View {
  /** What is chosen in charts that show one panel at a time: "quantile" and "load" to a panel's name. */
  choices: Record<string, string>;
  isLinear: boolean;
  highlight: string | null;
  hidden: string[];
}

export interface Place {
  anchor: string;
  view: View;
}

export const START: View = { choices: {}, isLinear: false, highlight: null, hidden: [] };
const OWN = new Set(["scale", "highlight", "hide"]);

/** "#response-time?quantile=p50&hide=waitress" as a place; what is unknown is kept out by the caller. */
export function readHash(hash: string): Place {
  const text = hash.replace(/^#/, "");
  const cut = text.indexOf("?");
  const parameters = new URLSearchParams(cut < 0 ? "" : text.slice(cut + 1));
  const choices: Record<string, string> = {};
  for (const [key, value] of parameters) if (!OWN.has(key)) choices[key] = value;
  const view = {
    choices,
    isLinear: parameters.get("scale") === "linear",
    highlight: parameters.get("highlight"),
    hidden: parameters.getAll("hide"),
  };
  return { anchor: decodeURIComponent(cut < 0 ? text : text.slice(0, cut)), view };
}

export function writeHash(place: Place): string {
  const { choices, isLinear, highlight, hidden } = place.view;
  const parameters = new URLSearchParams(Object.entries(choices));
  if (isLinear) parameters.set("scale", "linear");
  if (highlight !== null) parameters.set("highlight", highlight);
  for (const server of hidden) parameters.append("hide", server);
  const query = parameters.toString();
  return `#${encodeURIComponent(place.anchor)}${query ? `?${query}` : ""}`;
}

/** The view without servers that this page does not have. */
export function known(view: View, servers: readonly string[]): View {
  const has = (server: string): boolean => servers.includes(server);
  return {
    ...view,
    highlight: view.highlight !== null && has(view.highlight) ? view.highlight : null,
    hidden: view.hidden.filter(has),
  };
}

type Listener = () => void;

/** The one view of a page, and what has to be drawn again when it changes. */
export class Store {
  private view: View;
  private anchor: string;
  /** The server under the pointer; it is highlighted as long as it is there. */
  private pointed: number | null = null;
  private readonly drawers: Listener[] = [];
  private readonly dimmers: Listener[] = [];

  constructor(
    readonly servers: readonly string[],
    hash: string,
    private readonly remember: (hash: string) => void,
  ) {
    const place = readHash(hash);
    this.anchor = place.anchor;
    this.view = known(place.view, servers);
  }

  get current(): View {
    return this.view;
  }

  /** Index of the server that stands out, or null. */
  get highlighted(): number | null {
    if (this.pointed !== null) return this.pointed;
    const { highlight } = this.view;
    return highlight === null ? null : this.servers.indexOf(highlight);
  }

  isHidden(server: number): boolean {
    return this.view.hidden.includes(this.servers[server] ?? "");
  }

  change(changes: Partial<View>): void {
    this.view = { ...this.view, ...changes };
    this.remember(writeHash({ anchor: this.anchor, view: this.view }));
    for (const draw of this.drawers) draw();
  }

  toggle(server: number): void {
    const name = this.servers[server] ?? "";
    const { hidden } = this.view;
    this.change({
      hidden: hidden.includes(name) ? hidden.filter((one) => one !== name) : [...hidden, name],
    });
  }

  point(server: number | null): void {
    if (server === this.pointed) return;
    this.pointed = server;
    for (const dim of this.dimmers) dim();
  }

  goTo(anchor: string): void {
    this.anchor = anchor;
    this.remember(writeHash({ anchor, view: this.view }));
  }

  /** Called when a chart must be made anew. */
  onChange(draw: Listener): void {
    this.drawers.push(draw);
  }

  /** Called when only the highlight has moved. */
  onHighlight(dim: Listener): void {
    this.dimmers.push(dim);
  }
}
