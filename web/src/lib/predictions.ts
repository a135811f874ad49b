// What a plan would bring and what its task took, as figures. Pure.

import { bytes, count, duration, words } from "./format";

export interface Pair {
  name: string;
  before: number;
  after: number;
}

export interface Figure {
  name: string;
  value: string;
}

type Fields = Record<string, unknown>;

const TOLD_ELSEWHERE = new Set(["kind", "call", "undo", "gain", "layout", "estimate", "opened"]);

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a prediction says of before and after: of `x_before` with `x_after`, and of the parts of `before` and `after`. */
export function beforeAfter(prediction: object): Pair[] {
  const fields = prediction as Fields;
  const pairs: Pair[] = [];
  for (const [key, before] of Object.entries(fields)) {
    if (!key.endsWith("_before") || typeof before !== "number") continue;
    const name = key.slice(0, -"_before".length);
    const after = fields[`${name}_after`];
    const gone = fields[name];
    if (typeof after === "number") pairs.push({ name, before, after });
    else if (typeof gone === "number") pairs.push({ name, before, after: before - gone });
  }
  const { before, after } = fields;
  if (isFields(before) && isFields(after))
    for (const [name, value] of Object.entries(before)) {
      const then = after[name];
      if (typeof value === "number" && typeof then === "number") pairs.push({ name, before: value, after: then });
    }
  return pairs;
}

export function amount(name: string, value: number): string {
  if (name.endsWith("bytes")) return bytes(value);
  if (name.endsWith("_ms")) return duration(value);
  return count(value);
}

export function nameOf(key: string): string {
  return words(key.replace(/_bytes$/, "_size").replace(/_ms$/, "_time"));
}

/** The other numbers and short texts of a prediction. */
export function otherFigures(prediction: object): Figure[] {
  const paired = new Set(beforeAfter(prediction).map((pair) => pair.name));
  return Object.entries(prediction).flatMap(([key, value]): Figure[] => {
    if (TOLD_ELSEWHERE.has(key) || /_(before|after)$/.test(key) || paired.has(key)) return [];
    if (typeof value === "number") return [{ name: nameOf(key), value: amount(key, value) }];
    if (typeof value === "string" && value) return [{ name: nameOf(key), value }];
    if (typeof value === "boolean") return [{ name: nameOf(key), value: value ? "yes" : "no" }];
    return [];
  });
}

export interface Compared {
  name: string;
  predicted: string;
  measured: string;
}

interface Estimate {
  output_bytes: number;
  cpu_ms: number;
}
interface Measured {
  attempts: number;
  input_files: number;
  input_bytes: number;
  output_files: number;
  output_bytes: number;
  records: number;
  cpu_ms: number;
  proof_cpu_ms: number;
  wasted_bytes: number;
  wall_ms: number;
}

/** What was predicted of a rewrite beside what was measured. */
export function compared(
  prediction: {
    input_files: number;
    output_files: number;
    input_bytes: number;
    records: number;
    estimate: Estimate | null;
  },
  measured: Measured,
): Compared[] {
  const estimate = prediction.estimate;
  return [
    ["Files replaced", count(prediction.input_files), count(measured.input_files)],
    ["Files written", count(prediction.output_files), count(measured.output_files)],
    ["Read", bytes(prediction.input_bytes), bytes(measured.input_bytes)],
    ["Written", estimate ? bytes(estimate.output_bytes) : "–", bytes(measured.output_bytes)],
    ["Rows", count(prediction.records), count(measured.records)],
    ["CPU", estimate ? duration(estimate.cpu_ms) : "–", duration(measured.cpu_ms)],
    ["CPU of the proof", "–", duration(measured.proof_cpu_ms)],
    ["Wasted", "–", bytes(measured.wasted_bytes)],
    ["Elapsed", "–", duration(measured.wall_ms)],
  ].map(([name = "", predicted = "", done = ""]) => ({ name, predicted, measured: done }));
}
