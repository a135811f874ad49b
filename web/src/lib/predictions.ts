// What a plan would bring and what its task took, as figures. Pure.

import { bytes, count, duration, percent, words } from "./format";

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

// Before and after a task ---------------------------------------------------------------------------------------------

interface Totals {
  files: number | null;
  bytes: number | null;
  deletes: number | null;
}

interface SnapshotLike {
  sequence_number: number;
  task_id: string | null;
  summary: Record<string, string>;
}

const SUMMARY: Record<keyof Totals, [total: string, added: string, removed: string]> = {
  files: ["total-data-files", "added-data-files", "deleted-data-files"],
  bytes: ["total-files-size", "added-files-size", "removed-files-size"],
  deletes: ["total-delete-files", "added-delete-files", "removed-delete-files"],
};

function numberIn(summary: Record<string, string>, key: string): number | null {
  const found = summary[key];
  return found !== undefined && /^\d+$/.test(found) ? Number(found) : null;
}

/** What a commit left, or what was there before it; Iceberg leaves out what is zero. */
function totals(summary: Record<string, string>, isBefore: boolean): Totals {
  const sum = ([total, added, removed]: [string, string, string]) => {
    const after = numberIn(summary, total);
    return after === null || !isBefore
      ? after
      : after - (numberIn(summary, added) ?? 0) + (numberIn(summary, removed) ?? 0);
  };
  const hasSizes =
    !isBefore ||
    [SUMMARY.bytes[1], SUMMARY.bytes[2]].some((key) => key in summary) ||
    [SUMMARY.files[1], SUMMARY.files[2]].every((key) => !numberIn(summary, key));
  return { files: sum(SUMMARY.files), bytes: hasSizes ? sum(SUMMARY.bytes) : null, deletes: sum(SUMMARY.deletes) };
}

/** What the table had right before the first commit of a task, and right after its last one, by their summaries. */
export function committed(snapshots: SnapshotLike[], taskId: string): { before: Totals; after: Totals } | null {
  const own = snapshots
    .filter((each) => each.task_id === taskId)
    .sort((one, other) => one.sequence_number - other.sequence_number);
  const [first] = own;
  const last = own.at(-1);
  return first && last ? { before: totals(first.summary, true), after: totals(last.summary, false) } : null;
}

interface SampleLike {
  at: number;
  files: number;
  small_files: number;
}

export interface Seen {
  at: number;
  share: number;
}

/** The share of small files that the last look before a time saw, and the first one after another. */
export function seenAround(
  samples: SampleLike[],
  from: number,
  to: number | null,
): { before: Seen | null; after: Seen | null } {
  const seen = (sample: SampleLike | undefined): Seen | null =>
    sample && sample.files > 0 ? { at: sample.at, share: sample.small_files / sample.files } : null;
  const before = samples.filter((each) => each.at <= from).at(-1);
  return { before: seen(before), after: to === null ? null : seen(samples.find((each) => each.at >= to)) };
}

export interface Change {
  name: string;
  before: number;
  predicted: number | null;
  measured: number | null;
  write: (value: number) => string;
}

const MEAN = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

interface RewriteLike {
  input_bytes: number;
  estimate: {
    output_bytes: number;
    lookups: { column: string; partition: string; mean_before: number; mean_after: number }[];
  } | null;
}

/**
 * What a task changes of its table: before, afterwards as predicted, and afterwards as measured. Where its commits have
 * expired, what it reported is taken from what its plan saw.
 */
export function changes(
  prediction: object,
  commits: { before: Totals; after: Totals } | null,
  seen: { before: Seen | null; after: Seen | null },
  reported: { input_files: number; output_files: number } | null = null,
): Change[] {
  const pairs = beforeAfter(prediction);
  const files = pairs.find((pair) => pair.name === "data_files");
  const rewrite = "estimate" in prediction ? (prediction as RewriteLike) : null;
  const grown = rewrite?.estimate ? rewrite.estimate.output_bytes - rewrite.input_bytes : null;
  const size = commits?.before.bytes ?? null;
  const found: (Omit<Change, "before"> & { before: number | null })[] = [
    {
      name: "Data files",
      before: commits?.before.files ?? files?.before ?? null,
      predicted: files?.after ?? null,
      measured:
        commits?.after.files ??
        (files && reported ? files.before - reported.input_files + reported.output_files : null),
      write: count,
    },
    {
      name: "Size",
      before: size,
      predicted: size !== null && grown !== null ? size + grown : null,
      measured: commits?.after.bytes ?? null,
      write: bytes,
    },
    {
      name: "Delete files",
      before: commits?.before.deletes ?? null,
      predicted: null,
      measured: commits?.after.deletes ?? null,
      write: count,
    },
    {
      name: "Small files, as observed",
      before: seen.before?.share ?? null,
      predicted: null,
      measured: seen.after?.share ?? null,
      write: percent,
    },
    ...(rewrite?.estimate?.lookups ?? []).map((one) => ({
      name: `Files with one value of ${one.column}, in ${one.partition || "the table"}`,
      before: one.mean_before,
      predicted: one.mean_after,
      measured: null,
      write: MEAN.format,
    })),
    ...pairs
      .filter((pair) => pair !== files)
      .map(({ name, before, after }) => ({
        name: nameOf(name),
        before,
        predicted: after,
        measured: null,
        write: (value: number) => amount(name, value),
      })),
  ];
  return found.flatMap((one) =>
    one.before !== null && (one.predicted !== null || one.measured !== null) ? [{ ...one, before: one.before }] : [],
  );
}

/** The change that matters most, in a sentence, and what the work took. */
export function changeWords(found: Change[], cost: { cpu_ms: number; written_bytes: number } | null): string {
  const [first] = found;
  if (!first) return "";
  const after =
    first.measured === null
      ? `${first.write(first.predicted ?? 0)} afterwards, as predicted`
      : `${first.write(first.measured)} afterwards`;
  const took = cost ? ` It took ${duration(cost.cpu_ms)} of CPU and wrote ${bytes(cost.written_bytes)}.` : "";
  return `${first.name}: ${first.write(first.before)} before, ${after}.${took}`;
}
