// Copies tables as Markdown, for pull requests and issues.

function escaped(text: string): string {
  return text.replace(/\s+/g, " ").trim().replace(/\\/g, "\\\\").replace(/\|/g, "\\|");
}

/** A Markdown table. The first row contains the headings; columns with `isNumber` align right. */
export function toMarkdown(rows: readonly string[][], isNumber: readonly boolean[]): string {
  const [headings = [], ...body] = rows;
  const line = (fields: readonly string[]): string => `| ${fields.map(escaped).join(" | ")} |`;
  const rule = `|${headings.map((_, column) => (isNumber[column] ? "---:" : "---")).join("|")}|`;
  return [line(headings), rule, ...body.map(line)].join("\n") + "\n";
}

export function tableMarkdown(table: HTMLTableElement): string {
  const rows = [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent ?? ""));
  const heads = [...(table.rows[0]?.cells ?? [])];
  return toMarkdown(
    rows,
    heads.map((cell) => cell.classList.contains("n")),
  );
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Fallback for browsers without the Clipboard API, for example on file: pages.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const hasCopied = document.execCommand("copy");
    area.remove();
    return hasCopied;
  }
}

export function copyButton(text: () => string): HTMLButtonElement {
  const button = document.createElement("button");
  const name = "Copy as Markdown";
  button.type = "button";
  button.className = "copy";
  button.textContent = name;
  button.addEventListener("click", async () => {
    button.textContent = (await copy(text())) ? "Copied" : "Not copied";
    setTimeout(() => (button.textContent = name), 1500);
  });
  return button;
}
