// How figures, times and names are written. Pure.

const NUMBER = new Intl.NumberFormat("en");
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** Characters that would hide or re-order what stands around them are shown by their code. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (hidden) => `\\u{${hidden.codePointAt(0)?.toString(16)}}`);
}

export function count(number: number): string {
  return NUMBER.format(number);
}

export function plural(number: number, word: string): string {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

export function bytes(size: number): string {
  let unit = 0;
  let rest = size;
  while (Math.abs(rest) >= 1024 && unit < UNITS.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  const digits = unit > 0 && Math.abs(rest) < 100 ? 1 : 0;
  return `${rest.toLocaleString("en", { maximumFractionDigits: digits })} ${UNITS[unit]}`;
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toLocaleString("en", { maximumFractionDigits: 1 })} s`;
  if (seconds < 3600) return both(seconds / 60, 60, "min", "s");
  if (seconds < 86_400) return both(seconds / 3600, 60, "h", "min");
  return both(seconds / 86_400, 24, "d", "h");
}

function both(amount: number, parts: number, unit: string, part: string): string {
  const rest = Math.floor((amount % 1) * parts + 1e-9);
  return rest === 0 ? `${Math.floor(amount)} ${unit}` : `${Math.floor(amount)} ${unit} ${rest} ${part}`;
}

/** How long before `now` that was, or after it. */
export function ago(at: number, now: number): string {
  const seconds = Math.round((now - at) / 1000);
  const span = Math.abs(seconds);
  const [amount, unit] =
    span < 60
      ? [span, "s"]
      : span < 3600
        ? [Math.floor(span / 60), "min"]
        : span < 172_800
          ? [Math.floor(span / 3600), "h"]
          : [Math.floor(span / 86_400), "days"];
  return seconds < 0 ? `in ${amount} ${unit}` : `${amount} ${unit} ago`;
}

export function instant(at: number): string {
  return new Date(at).toLocaleString("sv-SE", { timeZoneName: "short" });
}

export function utc(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

export function words(code: string): string {
  return code.replaceAll("_", " ").replaceAll("-", " ");
}

export function percent(share: number): string {
  return `${(100 * share).toLocaleString("en", { maximumFractionDigits: share < 0.1 ? 1 : 0 })} %`;
}

/** Ids are long; their first characters tell them apart for people. */
export function short(id: string | number): string {
  const text = String(id);
  return text.length > 12 ? `${text.slice(0, 8)}…` : text;
}
