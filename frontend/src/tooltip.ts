// The tooltip of a chart: one row per server or figure.
import { swatch } from "./style";

export interface Row {
  server: number | null;
  name: string;
  value: string;
  isHighlighted: boolean;
}

const MAX_ROWS = 14;

export class Tooltip {
  private readonly box = document.createElement("div");

  constructor(private readonly over: HTMLElement) {
    this.box.className = "tip";
    this.box.hidden = true;
    over.append(this.box);
  }

  show(title: string, rows: readonly Row[], left: number, top: number): void {
    const head = document.createElement("b");
    head.textContent = title;
    const highlighted = rows.findIndex((row) => row.isHighlighted);
    const first = Math.max(0, Math.min(highlighted - MAX_ROWS / 2, rows.length - MAX_ROWS));
    const shown = rows.slice(first, first + MAX_ROWS);
    const more = rows.length - shown.length;
    this.box.replaceChildren(head, ...shown.map(line));
    if (more > 0) this.box.append(`and ${more} more`);
    this.box.hidden = false;
    this.place(left, top);
  }

  hide(): void {
    this.box.hidden = true;
  }

  private place(left: number, top: number): void {
    const { clientWidth, clientHeight } = this.over;
    const { offsetWidth, offsetHeight } = this.box;
    const edge = 4 - this.over.getBoundingClientRect().left;
    const isRight = left + 16 + offsetWidth < clientWidth;
    const x = Math.max(edge, isRight ? left + 16 : left - 16 - offsetWidth);
    const y = Math.min(Math.max(0, top - offsetHeight / 2), clientHeight - offsetHeight + 30);
    this.box.style.transform = `translate(${x}px, ${y}px)`;
  }
}

function line(row: Row): HTMLElement {
  const element = document.createElement("div");
  if (row.isHighlighted) element.className = "marked";
  const name = document.createElement("span");
  name.className = "name";
  name.textContent = row.name;
  const value = document.createElement("span");
  value.className = "value";
  value.textContent = row.value;
  element.append(row.server === null ? "" : swatch(row.server), name, value);
  return element;
}
