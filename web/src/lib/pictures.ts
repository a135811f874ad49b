// From what the API says to what is drawn. Pure, and tested against numbers counted by hand.

import type { Bounds, Bucket } from "../api/client";
import { bytes } from "./format";

// Fleet ---------------------------------------------------------------------------------------------------------------

export interface Leaf {
  name: string;
  value: number;
  health: number | null;
  grade: string;
  uuid: string;
  catalog: string;
}
export interface Branch {
  name: string;
  value: number;
  children: Leaf[];
}

interface TableLike {
  name: string;
  namespace: string;
  catalog: string;
  uuid: string;
  figures: { size_bytes: number } | null;
  health: { score: number; grade: string } | null;
}

/** Tables under their namespaces: the area is their size, so that one without data has none. */
export function treeOf(tables: TableLike[]): Branch[] {
  const branches = new Map<string, Branch>();
  for (const table of tables) {
    const value = table.figures?.size_bytes ?? 0;
    if (value <= 0) continue;
    const branch = branches.get(table.namespace) ?? { name: table.namespace, value: 0, children: [] };
    branches.set(table.namespace, branch);
    branch.value += value;
    branch.children.push({
      name: table.name.startsWith(`${table.namespace}.`) ? table.name.slice(table.namespace.length + 1) : table.name,
      value,
      health: table.health?.score ?? null,
      grade: table.health?.grade ?? "unknown",
      uuid: table.uuid,
      catalog: table.catalog,
    });
  }
  const found = [...branches.values()];
  for (const branch of found) branch.children.sort((one, other) => other.value - one.value);
  return found.sort((one, other) => other.value - one.value);
}

// File sizes ----------------------------------------------------------------------------------------------------------

/** Where a size stands on an axis on which each step doubles it. */
export function step(size: number): number {
  return size < 1 ? 0 : Math.log2(size);
}

export interface Bar {
  from: number;
  to: number;
  files: number;
  bytes: number;
  label: string;
}

export function histogramBars(buckets: Bucket[]): Bar[] {
  return buckets.map((bucket) => ({
    from: step(bucket.from_bytes),
    to: step(bucket.to_bytes),
    files: bucket.files,
    bytes: bucket.bytes,
    label: `${bytes(bucket.from_bytes)} to ${bytes(bucket.to_bytes)}`,
  }));
}

// Overlap of a column -------------------------------------------------------------------------------------------------

export interface Span {
  lower: number;
  upper: number;
  lane: number;
  item: number;
}
export interface Overlap {
  spans: Span[];
  lanes: number;
  /** Where how many files overlap: each step holds until the next. */
  depth: [number, number][];
  /** Whether values stand in their order instead of by their size, since they are texts. */
  isRanked: boolean;
}

function ranks(items: Bounds["items"], column: number): Map<string, number> {
  const values = new Set(items.flatMap(({ bounds }) => [bounds[column]?.min ?? "", bounds[column]?.max ?? ""]));
  const sorted = [...values].sort((one, other) => (one < other ? -1 : one > other ? 1 : 0));
  return new Map(sorted.map((value, index) => [value, index]));
}

/** The interval of one column in each file, by number or, where one has none, by rank. */
export function intervals(items: Bounds["items"], column: number): { spans: Omit<Span, "lane">[]; isRanked: boolean } {
  const isRanked = items.some(({ bounds }) => bounds[column]?.lower == null || bounds[column]?.upper == null);
  const rank = isRanked ? ranks(items, column) : null;
  const spans = items.flatMap(({ bounds }, item) => {
    const one = bounds[column];
    const lower = rank ? rank.get(one?.min ?? "") : one?.lower;
    const upper = rank ? rank.get(one?.max ?? "") : one?.upper;
    return lower == null || upper == null ? [] : [{ lower, upper, item }];
  });
  return { spans, isRanked };
}

/** Files as bars over the values of a column, in as few lanes as no two of one lane meet. */
export function overlap(items: Bounds["items"], column: number): Overlap {
  const { spans: found, isRanked } = intervals(items, column);
  const sorted = [...found].sort((one, other) => one.lower - other.lower || one.upper - other.upper);
  const ends: number[] = [];
  const spans = sorted.map((span) => {
    const free = ends.findIndex((end) => end < span.lower);
    const lane = free === -1 ? ends.length : free;
    ends[lane] = span.upper;
    return { ...span, lane };
  });
  const depth = depthCurve(found);
  return {
    spans,
    lanes: ends.length,
    depth,
    isRanked,
  };
}

/** How many intervals a value is in, their ends among them: changes come in the order of values. */
export function depthCurve(spans: { lower: number; upper: number }[]): [number, number][] {
  const begins = spans.map((span) => span.lower).sort((one, other) => one - other);
  const ends = spans.map((span) => span.upper).sort((one, other) => one - other);
  const points: [number, number][] = [];
  let depth = 0;
  let end = 0;
  const say = (at: number) => {
    const last = points[points.length - 1];
    if (last && last[0] === at) last[1] = Math.max(last[1], depth);
    else points.push([at, depth]);
  };
  for (const begin of begins) {
    while (end < ends.length && (ends[end] ?? Infinity) < begin) {
      depth -= 1;
      say(ends[end] ?? 0);
      end += 1;
    }
    depth += 1;
    say(begin);
  }
  while (end < ends.length) {
    depth -= 1;
    say(ends[end] ?? 0);
    end += 1;
  }
  return points;
}

export interface Rectangle {
  left: number;
  right: number;
  bottom: number;
  top: number;
  item: number;
}

/** Files as rectangles over two columns. */
export function rectangles(items: Bounds["items"]): { found: Rectangle[]; isRanked: boolean } {
  const across = intervals(items, 0);
  const up = intervals(items, 1);
  const upOf = new Map(up.spans.map((span) => [span.item, span]));
  const found = across.spans.flatMap((span) => {
    const other = upOf.get(span.item);
    return other
      ? [{ left: span.lower, right: span.upper, bottom: other.lower, top: other.upper, item: span.item }]
      : [];
  });
  return { found, isRanked: across.isRanked || up.isRanked };
}

// Partitions ----------------------------------------------------------------------------------------------------------

export interface PartitionLike {
  path: string;
  data_files: number;
  small_files: number;
  delete_files: number;
  size_bytes: number;
  optimized_at: number | null;
}

export const MEASURES = ["files", "small share", "delete files", "days since optimized"] as const;
export type Measure = (typeof MEASURES)[number];
const DAY_MS = 86_400_000;

export function measure(partition: PartitionLike, what: Measure, now: number): number | null {
  switch (what) {
    case "files":
      return partition.data_files;
    case "small share":
      return partition.data_files === 0 ? 0 : Math.round((100 * partition.small_files) / partition.data_files);
    case "delete files":
      return partition.delete_files;
    case "days since optimized":
      return partition.optimized_at === null ? null : Math.floor((now - partition.optimized_at) / DAY_MS);
  }
}

const DAY = /=(\d{4}-\d{2}-\d{2})(?![\d-])/;
const MONTH = /=(\d{4})-(\d{2})(?![\d-])/;

export type HeatCells =
  | { shape: "days"; years: string[]; cells: { day: string; value: number }[] }
  | { shape: "months"; years: string[]; cells: { column: number; row: number; value: number; name: string }[] }
  | { shape: "grid"; width: number; cells: { column: number; row: number; value: number; name: string }[] };

const GRID_WIDTH = 24;

/** Partitions as cells: of a calendar where they are days or months, else in their own order. Cells of one day add up. */
export function heatCells(partitions: PartitionLike[], what: Measure, now: number): HeatCells {
  const known = partitions.flatMap((partition) => {
    const value = measure(partition, what, now);
    return value === null ? [] : [{ partition, value }];
  });
  const days = known.map(({ partition, value }) => ({ day: DAY.exec(partition.path)?.[1], value }));
  const isSum = what === "files" || what === "delete files";
  if (days.length > 0 && days.every((each) => each.day !== undefined)) {
    const byDay = new Map<string, number>();
    for (const { day = "", value } of days) {
      const before = byDay.get(day);
      byDay.set(day, before === undefined ? value : isSum ? before + value : Math.max(before, value));
    }
    const cells = [...byDay].sort().map(([day, value]) => ({ day, value }));
    return { shape: "days", years: [...new Set(cells.map(({ day }) => day.slice(0, 4)))], cells };
  }
  const months = known.map(({ partition, value }) => ({ found: MONTH.exec(partition.path), value }));
  if (months.length > 0 && months.every((each) => each.found !== null)) {
    const years = [...new Set(months.map(({ found }) => found?.[1] ?? ""))].sort();
    const byMonth = new Map<string, number>();
    for (const { found, value } of months) {
      const key = `${found?.[1]}-${found?.[2]}`;
      const before = byMonth.get(key);
      byMonth.set(key, before === undefined ? value : isSum ? before + value : Math.max(before, value));
    }
    const cells = [...byMonth].sort().map(([name, value]) => ({
      column: Number(name.slice(5)) - 1,
      row: years.indexOf(name.slice(0, 4)),
      value,
      name,
    }));
    return { shape: "months", years, cells };
  }
  return {
    shape: "grid",
    width: GRID_WIDTH,
    cells: known.map(({ partition, value }, index) => ({
      column: index % GRID_WIDTH,
      row: Math.floor(index / GRID_WIDTH),
      value,
      name: partition.path || "(unpartitioned)",
    })),
  };
}

// Snapshots -----------------------------------------------------------------------------------------------------------

export const OPERATIONS = ["append", "overwrite", "delete", "replace", "other"] as const;

interface SnapshotLike {
  snapshot_id: number | string;
  committed_at: number;
  operation: string | null;
  task_id: string | null;
  refs: string[];
  is_ancestor: boolean;
}

export interface Commit {
  at: number;
  lane: number;
  isOurs: boolean;
  isCurrentLine: boolean;
  refs: string;
  id: string;
}

export function commits(snapshots: SnapshotLike[]): Commit[] {
  return snapshots
    .map((each) => ({
      at: each.committed_at,
      lane: OPERATIONS.findIndex((one) => one === (each.operation ?? "other")),
      isOurs: each.task_id !== null,
      isCurrentLine: each.is_ancestor,
      refs: each.refs.join(", "),
      id: String(each.snapshot_id),
    }))
    .map((each) => (each.lane === -1 ? { ...each, lane: OPERATIONS.length - 1 } : each))
    .sort((one, other) => one.at - other.at);
}

// Storage -------------------------------------------------------------------------------------------------------------

export interface Step {
  name: string;
  bytes: number;
  from: number;
}

/** Parts on top of each other, each beginning where the one before ended. */
export function waterfall(parts: { name: string; bytes: number }[]): Step[] {
  let from = 0;
  return parts.map(({ name, bytes: size }) => {
    const here = { name, bytes: size, from };
    from += size;
    return here;
  });
}

// Tasks over time -----------------------------------------------------------------------------------------------------

interface TaskLike {
  task_id: string;
  table: string;
  state: string;
  resource_group: string;
  created_at: number;
  updated_at: number;
}

export interface Run {
  id: string;
  table: string;
  group: string;
  state: string;
  from: number;
  to: number;
  lane: number;
}

const OVER = new Set(["succeeded", "failed", "cancelled", "superseded"]);

/** Tasks from being queued to their end, or until now, in lanes: those of one group beside each other. */
export function runs(tasks: TaskLike[], now: number): Run[] {
  return [...tasks]
    .sort((one, other) => one.resource_group.localeCompare(other.resource_group) || one.created_at - other.created_at)
    .map((task, lane) => ({
      id: task.task_id,
      table: task.table,
      group: task.resource_group,
      state: task.state,
      from: task.created_at,
      to: OVER.has(task.state) ? task.updated_at : Math.max(now, task.created_at),
      lane,
    }));
}

// Benefit -------------------------------------------------------------------------------------------------------------

interface DoneLike {
  prediction: { kind: string } & Record<string, unknown>;
  measured: {
    input_files: number;
    output_files: number;
    input_bytes: number;
    output_bytes: number;
    cpu_ms: number;
    wasted_bytes: number;
  } | null;
}

export interface Benefit {
  tasks: number;
  filesBefore: number;
  filesAfter: number;
  bytesRead: number;
  bytesWritten: number;
  bytesPredicted: number;
  cpuMs: number;
  cpuPredictedMs: number;
  wastedBytes: number;
}

/** What rewrites of data files have brought and cost, of those that were measured. */
export function benefit(done: DoneLike[]): Benefit {
  const total: Benefit = {
    tasks: 0,
    filesBefore: 0,
    filesAfter: 0,
    bytesRead: 0,
    bytesWritten: 0,
    bytesPredicted: 0,
    cpuMs: 0,
    cpuPredictedMs: 0,
    wastedBytes: 0,
  };
  for (const { prediction, measured } of done) {
    if (prediction.kind !== "rewrite_data_files" || measured === null) continue;
    const estimate = prediction.estimate as { output_bytes: number; cpu_ms: number } | null | undefined;
    total.tasks += 1;
    total.filesBefore += measured.input_files;
    total.filesAfter += measured.output_files;
    total.bytesRead += measured.input_bytes;
    total.bytesWritten += measured.output_bytes;
    total.bytesPredicted += estimate?.output_bytes ?? 0;
    total.cpuMs += measured.cpu_ms;
    total.cpuPredictedMs += estimate?.cpu_ms ?? 0;
    total.wastedBytes += measured.wasted_bytes;
  }
  return total;
}
