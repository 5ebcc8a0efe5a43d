// The controls above the charts: legend, highlighted server, scale and zoom.
import type { Store } from "./state";
import { swatch } from "./style";

function button(name: string, onClick: () => void): HTMLButtonElement {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = name;
  element.addEventListener("click", onClick);
  return element;
}

/** A legend entry: a click shows or hides the server, hover or keyboard focus highlights it. */
function serverButton(store: Store, server: number, name: string): HTMLButtonElement {
  const element = button("", () => store.toggle(server));
  element.className = "server";
  element.append(swatch(server), name);
  element.title = `${name}: click to hide or show`;
  for (const event of ["mouseenter", "focus"]) {
    element.addEventListener(event, () => store.hover(store.isHidden(server) ? null : server));
  }
  for (const event of ["mouseleave", "blur"]) element.addEventListener(event, () => store.hover(null));
  return element;
}

function highlightSelect(store: Store): HTMLLabelElement {
  const select = document.createElement("select");
  select.append(new Option("no server", ""), ...store.servers.map((name) => new Option(name, name)));
  select.addEventListener("change", () => store.change({ highlight: select.value || null }));
  const label = document.createElement("label");
  label.append("highlight ", select);
  return label;
}

export function makeControls(store: Store, target: HTMLElement, resetZoom: () => void): void {
  const servers = store.servers.map((name, server) => serverButton(store, server, name));
  const legend = document.createElement("div");
  legend.className = "legend";
  legend.setAttribute("role", "group");
  legend.setAttribute("aria-label", "servers shown");
  legend.append(...servers);

  const highlight = highlightSelect(store);
  const scale = button("logarithmic", () => store.change({ isLinear: !store.current.isLinear }));
  const settings = document.createElement("div");
  settings.className = "settings";
  settings.append(
    button("all", () => store.change({ hidden: [] })),
    button("none", () => store.change({ hidden: [...store.servers] })),
    highlight,
    scale,
    button("reset zoom", resetZoom),
  );
  target.replaceChildren(legend, settings);

  const update = (): void => {
    servers.forEach((element, server) =>
      element.setAttribute("aria-pressed", String(!store.isHidden(server))),
    );
    scale.setAttribute("aria-pressed", String(!store.current.isLinear));
    const select = highlight.querySelector("select");
    if (select) select.value = store.current.highlight ?? "";
  };
  store.onChange(update);
  update();
}
