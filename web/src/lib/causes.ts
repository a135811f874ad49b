// What was saved and spent by cause, as a waterfall that may cross zero.

export interface Step {
  name: string;
  kind: "saved" | "spent" | "net";
  value: number;
}

export interface Floating {
  /** Where nothing is drawn: from zero to the near end of the bar. */
  base: number;
  above: number;
  below: number;
}

/** What each cause saved and spent, one step after the other, and what is left, unless no saving is known at all. */
export function steps(causes: { cause: string; saved_cpu_ms?: number | null; cpu_ms: number }[]): Step[] {
  const found: Step[] = causes.flatMap(({ cause, saved_cpu_ms, cpu_ms }) => [
    ...(saved_cpu_ms == null ? [] : [{ name: `${cause}, saved`, kind: "saved" as const, value: saved_cpu_ms }]),
    ...(cpu_ms > 0 ? [{ name: `${cause}, spent`, kind: "spent" as const, value: -cpu_ms }] : []),
  ]);
  if (!found.some((step) => step.kind === "saved")) return found;
  return [...found, { name: "net", kind: "net", value: found.reduce((sum, step) => sum + step.value, 0) }];
}

/** The bars: each begins where the one before it ends, the last at zero. */
export function floating(found: Step[]): Floating[] {
  let at = 0;
  return found.map(({ kind, value }) => {
    const [from, to] = kind === "net" ? [0, value] : [at, at + value];
    at = to;
    const [low, high] = [Math.min(from, to), Math.max(from, to)];
    if (low >= 0) return { base: low, above: high - low, below: 0 };
    if (high <= 0) return { base: high, above: 0, below: low - high };
    return { base: 0, above: high, below: low };
  });
}
