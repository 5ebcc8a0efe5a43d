// The current view of the page. The URL fragment stores it, so that links reproduce it.

export interface View {
  /** Selected panel of charts that show one at a time, by choice ("quantile" or "load"). */
  choices: Record<string, string>;
  isLinear: boolean;
  highlight: string | null;
  hidden: string[];
}

export interface Fragment {
  anchor: string;
  view: View;
}

export const DEFAULT_VIEW: View = { choices: {}, isLinear: false, highlight: null, hidden: [] };
const RESERVED_KEYS = new Set(["scale", "highlight", "hide"]);

/** Parses "#response-time?quantile=p50&hide=waitress". The caller removes unknown names. */
export function readHash(hash: string): Fragment {
  const text = hash.replace(/^#/, "");
  const queryStart = text.indexOf("?");
  const parameters = new URLSearchParams(queryStart < 0 ? "" : text.slice(queryStart + 1));
  const choices: Record<string, string> = {};
  for (const [key, value] of parameters) if (!RESERVED_KEYS.has(key)) choices[key] = value;
  const view = {
    choices,
    isLinear: parameters.get("scale") === "linear",
    highlight: parameters.get("highlight"),
    hidden: parameters.getAll("hide"),
  };
  return { anchor: decodeURIComponent(queryStart < 0 ? text : text.slice(0, queryStart)), view };
}

export function writeHash(fragment: Fragment): string {
  const { choices, isLinear, highlight, hidden } = fragment.view;
  const parameters = new URLSearchParams(Object.entries(choices));
  if (isLinear) parameters.set("scale", "linear");
  if (highlight !== null) parameters.set("highlight", highlight);
  for (const server of hidden) parameters.append("hide", server);
  const query = parameters.toString();
  return `#${encodeURIComponent(fragment.anchor)}${query ? `?${query}` : ""}`;
}

/** The view without servers that are not on this page. */
export function withKnownServers(view: View, servers: readonly string[]): View {
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
  private hovered: number | null = null;
  private readonly changeListeners: Listener[] = [];
  private readonly highlightListeners: Listener[] = [];

  constructor(
    readonly servers: readonly string[],
    hash: string,
    private readonly saveHash: (hash: string) => void,
  ) {
    const fragment = readHash(hash);
    this.anchor = fragment.anchor;
    this.view = withKnownServers(fragment.view, servers);
  }

  get current(): View {
    return this.view;
  }

  /** Index of the highlighted server, or null. */
  get highlighted(): number | null {
    if (this.hovered !== null) return this.hovered;
    const { highlight } = this.view;
    return highlight === null ? null : this.servers.indexOf(highlight);
  }

  isHidden(server: number): boolean {
    return this.view.hidden.includes(this.servers[server] ?? "");
  }

  change(changes: Partial<View>): void {
    this.view = { ...this.view, ...changes };
    this.saveHash(writeHash({ anchor: this.anchor, view: this.view }));
    for (const draw of this.changeListeners) draw();
  }

  toggle(server: number): void {
    const name = this.servers[server] ?? "";
    const { hidden } = this.view;
    this.change({
      hidden: hidden.includes(name) ? hidden.filter((other) => other !== name) : [...hidden, name],
    });
  }

  hover(server: number | null): void {
    if (server === this.hovered) return;
    this.hovered = server;
    for (const dim of this.highlightListeners) dim();
  }

  goTo(anchor: string): void {
    this.anchor = anchor;
    this.saveHash(writeHash({ anchor, view: this.view }));
  }

  /** Adds a listener for changes that need a redraw. */
  onChange(draw: Listener): void {
    this.changeListeners.push(draw);
  }

  /** Adds a listener for changes of the hovered server only. */
  onHighlight(dim: Listener): void {
    this.highlightListeners.push(dim);
  }
}
