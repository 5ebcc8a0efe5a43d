// The current view of the page. The URL fragment stores it, so that links reproduce it.

export interface View {
  /** Selected panel of charts that show one at a time, by choice ("quantile" or "load"). */
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

/** Parses "#response-time?quantile=p50&hide=waitress". The caller removes unknown names. */
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

/** The view without servers that are not on this page. */
export function known(view: View, servers: readonly string[]): View {
  const has = (server: string): boolean => servers.includes(server);
  return {
    ...view,
    highlight: view.highlight !== null && has(view.highlight) ? view.highlight : null,
    hidden: view.hidden.filter(has),
  };
}

type Listener = () => void;

/** The current view of the page, and the listeners for its changes. */
export class Store {
  private view: View;
  private anchor: string;
  /** The server under the pointer; its highlight overrides the selected one. */
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

  /** Index of the highlighted server, or null. */
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

  /** Adds a listener for changes that need a redraw. */
  onChange(draw: Listener): void {
    this.drawers.push(draw);
  }

  /** Adds a listener for changes of the hovered server only. */
  onHighlight(dim: Listener): void {
    this.dimmers.push(dim);
  }
}
