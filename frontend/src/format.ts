// Formats numbers exactly like the tables of the page (wsgiload/report/words.py).
import type { Unit } from "./data";

export const MISSING = "–";

const DURATION_UNITS: readonly [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
];
const SIZE_UNITS: readonly [number, string][] = [
  [2 ** 40, "TiB"],
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
  [2 ** 10, "KiB"],
];

/** Like toFixed, but rounds ties half to even, like Python. */
export function fixed(value: number, decimals: number): string {
  const power = 10 ** decimals;
  // In binary, only multiples of 2^-(decimals + 1) can lie exactly between two decimals.
  const isTie = Number.isInteger(value * 2 ** (decimals + 1)) && Math.abs((value * power) % 1) === 0.5;
  if (!isTie) return value.toFixed(decimals);
  const below = Math.floor(value * power);
  return ((below % 2 === 0 ? below : below + 1) / power).toFixed(decimals);
}

/** Rounds to `digits` significant digits. Ties between whole numbers round half to even. */
export function precise(value: number, digits: number): number {
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - digits + 1);
  if (unit < 1) return Number(value.toPrecision(digits));
  const below = Math.floor(value / unit);
  const isTie = value % unit === unit / 2;
  return isTie ? (below % 2 === 0 ? below : below + 1) * unit : Number(value.toPrecision(digits));
}

function grouped(value: number, decimals: number): string {
  const [whole = "", fraction] = fixed(value, decimals).split(".");
  const separated = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? separated : `${separated}.${fraction}`;
}

/** Three significant digits, never with an exponent: 12,345 becomes 12,300. */
export function threeDigits(value: number): string {
  const rounded = precise(value, 3);
  if (rounded === 0) return "0";
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded))));
  return grouped(rounded, decimals);
}

export function formatDuration(ns: number): string {
  const rounded = precise(ns, 3);
  for (const [size, unit] of DURATION_UNITS) {
    if (Math.abs(rounded) >= size) return `${threeDigits(rounded / size)} ${unit}`;
  }
  return `${fixed(rounded, 0)} ns`;
}

export function formatRate(perSecond: number): string {
  const isWhole = Number.isInteger(perSecond) || perSecond >= 100;
  return isWhole ? grouped(perSecond, 0) : threeDigits(perSecond);
}

/** Like formatRate, but with three significant digits from 1,000 on. */
export function formatMeasuredRate(perSecond: number): string {
  return perSecond >= 1000 ? threeDigits(perSecond) : formatRate(perSecond);
}

export function formatBytes(bytes: number): string {
  for (const [size, unit] of SIZE_UNITS) {
    if (bytes < size) continue;
    const value = bytes / size;
    const text = bytes % size === 0 || value >= 1000 ? grouped(value, 0) : threeDigits(value);
    return `${text} ${unit}`;
  }
  return `${fixed(bytes, 0)} B`;
}

/** As a percentage. A ratio below 1 never prints as 100 %, and a ratio above 0 never as 0 %. */
export function formatRatio(ratio: number): string {
  const percent = ratio * 100;
  if (percent <= 0) return "0 %";
  if (percent === 100) return "100 %";
  if (percent < 0.001) return "< 0.001 %";
  if (percent < 0.1) return `${Number(percent.toPrecision(1))} %`;
  let decimals = 1;
  while (percent < 100 && decimals < 4 && Number(fixed(percent, decimals)) >= 100) decimals += 1;
  const text = fixed(percent, decimals);
  return percent < 100 && Number(text) >= 100 ? "> 99.999 %" : `${text} %`;
}

const FORMATS: Record<Unit, (value: number) => string> = {
  ns: formatDuration,
  per_s: (value) => `${formatMeasuredRate(value)}/s`,
  ratio: formatRatio,
  cores: (value) => fixed(value, 2),
  bytes: formatBytes,
  count: (value) => grouped(value, 0),
};

export function format(value: number | null | undefined, unit: Unit): string {
  return value === null || value === undefined ? MISSING : FORMATS[unit](value);
}

/** A tick label: no trailing zeros, and rates without "/s". */
export function formatTick(value: number, unit: Unit): string {
  const text = unit === "per_s" ? formatRate(value) : format(value, unit);
  return text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
}
