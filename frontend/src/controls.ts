// The controls above the charts: legend, highlighted server, scale and zoom.
import { swatch } from "./look";
import type { Store } from "./state";

function button(name: string, act: () => void): HTMLButtonElement {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = name;
  element.addEventListener("click", act);
  return element;
}

/** A legend entry: a click shows or hides the server, hover or keyboard focus highlights it. */
function serverButton(store: Store, server: number, name: string): HTMLButtonElement {
  const element = button("", () => store.toggle(server));
  element.className = "server";
  element.append(swatch(server), name);
  element.title = `${name}: click to hide or show`;
  for (const event of ["mouseenter", "focus"]) {
    element.addEventListener(event, () => store.point(store.isHidden(server) ? null : server));
  }
  for (const event of ["mouseleave", "blur"]) element.addEventListener(event, () => store.point(null));
  return element;
}

function highlightChoice(store: Store): HTMLLabelElement {
  const choice = document.createElement("select");
  choice.append(new Option("no server", ""), ...store.servers.map((name) => new Option(name, name)));
  choice.addEventListener("change", () => store.change({ highlight: choice.value || null }));
  const label = document.createElement("label");
  label.append("highlight ", choice);
  return label;
}

export function makeControls(store: Store, target: HTMLElement, resetZoom: () => void): void {
  const servers = store.servers.map((name, server) => serverButton(store, server, name));
  const legend = document.createElement("div");
  legend.className = "legend";
  legend.setAttribute("role", "group");
  legend.setAttribute("aria-label", "servers shown");
  legend.append(...servers);

  const highlight = highlightChoice(store);
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
    const choice = highlight.querySelector("select");
    if (choice) choice.value = store.current.highlight ?? "";
  };
  store.onChange(update);
  update();
}
