// The data embedded in the page. Its types are generated from the JSON Schema.
import type { PageData, PagePanel, PageRun, PageSeries, PageTimeline } from "./generated/page-data";

export type { LiveFrame, PageBar, PageBars, PageBreakdown, PageChart, PageHeat, PageLine, PageObjective, PageSearch, PageService, PageTrial } from "./generated/page-data";
export type { PageData, PagePanel, PageRun, PageSeries, PageTimeline };
export type Unit = PagePanel["unit"];

export function readData(): PageData | null {
  const element = document.getElementById("page-data");
  return element?.textContent ? (JSON.parse(element.textContent) as PageData) : null;
}
