// From what the API says to what is drawn. Pure, and tested against numbers counted by hand.

import type { Bounds, Bucket } from "../api/client";
import { bytes, count, plural, words } from "./format";

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

type Items = Bounds["items"];
type Ends = Items[number]["bounds"][number];

/** By what values stand on an axis: instants by time, numbers by size, all others by their order. */
export type Scale = "time" | "number" | "rank";

const INSTANTS: Record<string, (value: number) => number> = {
  date: (days) => days * 86_400_000,
  timestamp: (micros) => micros / 1000,
  timestamptz: (micros) => micros / 1000,
};
const INSTANT_MAX_MS = 8.64e15;

export interface Span {
  lower: number;
  upper: number;
  item: number;
}
export interface Laid {
  scale: Scale;
  spans: Span[];
  /** The values in their order, as far as a file begins or ends there. */
  names: string[];
}

function placeOf(type: string, scale: Scale): (ends: Ends) => [number | null, number | null] {
  if (scale === "rank") return (ends) => [ends.min_rank, ends.max_rank];
  const place = (scale === "time" ? INSTANTS[type] : undefined) ?? ((value: number) => value);
  return ({ lower, upper }) => [lower === null ? null : place(lower), upper === null ? null : place(upper)];
}

/** The interval of one column in each file. Where a number is missing, or too far for a calendar, values have ranks. */
export function lay(items: Items, column: number, type: string, isEven = false): Laid {
  const found = items.flatMap(({ bounds }, item) => {
    const ends = bounds[column];
    return ends ? [{ ends, item }] : [];
  });
  const wanted: Scale = isEven || type === "boolean" ? "rank" : type in INSTANTS ? "time" : "number";
  const fits = (scale: Scale) => {
    const place = placeOf(type, scale);
    return found.every(({ ends }) =>
      place(ends).every((at) => at !== null && (scale !== "time" || Math.abs(at) <= INSTANT_MAX_MS)),
    );
  };
  const scale = fits(wanted) ? wanted : "rank";
  const place = placeOf(type, scale);
  const spans = found.map(({ ends, item }) => {
    const [lower, upper] = place(ends);
    return { lower: lower ?? 0, upper: upper ?? 0, item };
  });
  const names: string[] = [];
  for (const { ends } of found) {
    names[ends.min_rank] = ends.min;
    names[ends.max_rank] = ends.max;
  }
  return { scale, spans, names };
}

/** Spans in as few lanes as no two of one lane meet; those of time may touch, since one ends before the other begins. */
export function lanes(spans: Span[], mayTouch = false): { spans: (Span & { lane: number })[]; lanes: number } {
  const sorted = [...spans].sort((one, other) => one.lower - other.lower || one.upper - other.upper);
  const ends: number[] = [];
  const found = sorted.map((span) => {
    const free = ends.findIndex((end) => end < span.lower || (mayTouch && end === span.lower));
    const lane = free === -1 ? ends.length : free;
    ends[lane] = span.upper;
    return { ...span, lane };
  });
  return { spans: found, lanes: ends.length };
}

export interface Depth {
  at: number;
  /** How many files have that value. */
  here: number;
  /** How many have the values behind it, until the next one. */
  after: number;
}

/** How many intervals have each value at which one begins or ends, both ends included. */
export function depths(spans: { lower: number; upper: number }[]): Depth[] {
  const begins = spans.map((span) => span.lower).sort((one, other) => one - other);
  const ends = spans.map((span) => span.upper).sort((one, other) => one - other);
  const values = [...new Set([...begins, ...ends])].sort((one, other) => one - other);
  let begun = 0;
  let ended = 0;
  return values.map((at) => {
    while ((begins[begun] ?? Infinity) <= at) begun += 1;
    const here = begun - ended;
    while ((ends[ended] ?? Infinity) <= at) ended += 1;
    return { at, here, after: begun - ended };
  });
}

const MEAN = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

interface Opening {
  depth_max: number;
  depth_mean: number;
}

function opens(what: string, { depth_max: most, depth_mean: mean }: Opening, files: number): string {
  return `${what} opens ${count(most)} of ${plural(files, "file")} at worst, ${MEAN.format(mean)} on average.`;
}

/** What a lookup opens, in sentences: the first says how many. */
export function overlapWords(told: Bounds["overlap"][number]): string[] {
  const { files, unknown_files: unknown, null_files: nulls } = told;
  const all = files + nulls;
  const first =
    files === 0
      ? `A lookup of a value opens none of ${plural(all, "file")}.`
      : unknown === files
        ? `A lookup opens ${count(files)} of ${plural(all, "file")}: none has bounds of this column.`
        : opens("A lookup", told, all);
  return [
    first,
    ...(unknown > 0 && unknown < files ? [`${plural(unknown, "file")} without bounds: every lookup opens them.`] : []),
    ...(nulls > 0 ? [`${plural(nulls, "file")} with nothing but NULL: no lookup of a value opens them.`] : []),
  ];
}

/** What a lookup by both columns opens; nothing where that was not counted. */
export function bothWords(bounds: Bounds): string {
  return bounds.both ? opens("A lookup by both", bounds.both, bounds.files_read) : "";
}

/** What the picture leaves out, to stand on it. */
export function sampleWords(bounds: Bounds): string {
  return bounds.sampled
    ? `A sample: ${count(bounds.items.length)} of ${plural(bounds.files_read - bounds.unknown_files, "file")} with bounds.`
    : "";
}

export function readWords(bounds: Bounds): string {
  return bounds.truncated
    ? `Only ${count(bounds.files_read)} of ${plural(bounds.files_total, "file")} were read, and all numbers are of those.`
    : "";
}

export interface Rectangle {
  left: number;
  right: number;
  bottom: number;
  top: number;
  item: number;
}

/** Files as rectangles over two columns. */
export function rectangles(across: Laid, up: Laid): Rectangle[] {
  const upOf = new Map(up.spans.map((span) => [span.item, span]));
  return across.spans.flatMap((span) => {
    const other = upOf.get(span.item);
    return other
      ? [{ left: span.lower, right: span.upper, bottom: other.lower, top: other.upper, item: span.item }]
      : [];
  });
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

/** A day, or an hour of it. */
const DAY = /=(\d{4}-\d{2}-\d{2})(?:-\d{2})?(?![\d-])/;
const MONTH = /=(\d{4}-\d{2})(?![\d-])/;

export type HeatCells =
  | { shape: "days"; years: string[]; cells: { day: string; value: number }[]; undated: number }
  | {
      shape: "months";
      years: string[];
      cells: { column: number; row: number; value: number; name: string }[];
      undated: number;
    }
  | { shape: "grid"; width: number; cells: { column: number; row: number; value: number; name: string }[] };

const GRID_WIDTH = 24;

/** Values by date where most partitions have one, and how many have none. Those of one date add up. */
function byDate(
  known: { partition: PartitionLike; value: number }[],
  pattern: RegExp,
  isSum: boolean,
): { found: [date: string, value: number][]; undated: number } | null {
  const found = new Map<string, number>();
  let undated = 0;
  for (const { partition, value } of known) {
    const date = pattern.exec(partition.path)?.[1];
    if (date === undefined) undated += 1;
    else {
      const before = found.get(date);
      found.set(date, before === undefined ? value : isSum ? before + value : Math.max(before, value));
    }
  }
  return known.length > 2 * undated ? { found: [...found].sort(), undated } : null;
}

/** Partitions as cells: of a calendar where they are hours, days or months, else in their own order. */
export function heatCells(partitions: PartitionLike[], what: Measure, now: number): HeatCells {
  const known = partitions.flatMap((partition) => {
    const value = measure(partition, what, now);
    return value === null ? [] : [{ partition, value }];
  });
  const isSum = what === "files" || what === "delete files";
  const yearsOf = (dates: [string, number][]) => [...new Set(dates.map(([date]) => date.slice(0, 4)))];
  const days = byDate(known, DAY, isSum);
  if (days)
    return {
      shape: "days",
      years: yearsOf(days.found),
      cells: days.found.map(([day, value]) => ({ day, value })),
      undated: days.undated,
    };
  const months = byDate(known, MONTH, isSum);
  if (months) {
    const years = yearsOf(months.found);
    const cells = months.found.map(([name, value]) => ({
      column: Number(name.slice(5)) - 1,
      row: years.indexOf(name.slice(0, 4)),
      value,
      name,
    }));
    return { shape: "months", years, cells, undated: months.undated };
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
export const CONFLICTS = "conflicts";
export const OURS = "icewright";

interface SnapshotLike {
  snapshot_id: string;
  parent_id: string | null;
  committed_at: number;
  operation: string | null;
  task_id: string | null;
  refs: string[];
  is_ancestor: boolean;
  summary: Record<string, string>;
}
interface RefLike {
  name: string;
  type: string;
  snapshot_id: string;
}
interface ConflictLike {
  task_id: string;
  attempt: number;
  optimizer_id: string;
  kind: string;
  started_at: number;
  ended_at: number | null;
}

export interface Commit {
  at: number;
  operation: string;
  writer: string;
  isCurrentLine: boolean;
  refs: string[];
  id: string;
}
export interface RefLane {
  lane: string;
  /** The commits of a branch since it left the current history, the one where it did among them; that of a tag. */
  points: { at: number; id: string }[];
}
export interface Conflict {
  at: number;
  task: string;
  said: string;
}
export interface Timeline {
  lanes: string[];
  commits: Commit[];
  writers: string[];
  refs: RefLane[];
  conflicts: Conflict[];
}

const REFS_DRAWN_MAX = 30;

/** Who wrote a snapshot, by what its engine says of itself. */
export function writerOf({ task_id: task, summary }: Pick<SnapshotLike, "task_id" | "summary">): string {
  if (task !== null) return OURS;
  return summary["engine-name"] || summary["app-name"] || "a writer";
}

function refLane(ref: RefLike, byId: Map<string, SnapshotLike>): RefLane {
  const head = byId.get(ref.snapshot_id);
  const points: RefLane["points"] = [];
  for (let one = head; one; one = one.parent_id === null ? undefined : byId.get(one.parent_id)) {
    points.push({ at: one.committed_at, id: one.snapshot_id });
    if (ref.type !== "branch" || one.is_ancestor || points.length > byId.size) break;
  }
  return { lane: `${ref.type} ${ref.name}`, points: points.reverse() };
}

/** Snapshots by operation and writer, conflicts of our tasks, and branches and tags, each in a lane of its own. */
export function timeline(snapshots: SnapshotLike[], refs: RefLike[], conflicts: ConflictLike[]): Timeline {
  const byId = new Map(snapshots.map((each) => [each.snapshot_id, each]));
  const commits = snapshots
    .map((each) => ({
      at: each.committed_at,
      operation: OPERATIONS.find((one) => one === each.operation) ?? "other",
      writer: writerOf(each),
      isCurrentLine: each.is_ancestor,
      refs: each.refs,
      id: each.snapshot_id,
    }))
    .sort((one, other) => one.at - other.at);
  const lanesOfRefs = refs
    .filter(({ name }) => name !== "main")
    .slice(0, REFS_DRAWN_MAX)
    .map((ref) => refLane(ref, byId))
    .filter(({ points }) => points.length > 0);
  const refused = conflicts.map((one) => ({
    at: one.ended_at ?? one.started_at,
    task: one.task_id,
    said: `${words(one.kind)}, try ${one.attempt}, by ${one.optimizer_id}`,
  }));
  return {
    lanes: [
      ...OPERATIONS.filter((one) => commits.some(({ operation }) => operation === one)),
      ...(refused.length > 0 ? [CONFLICTS] : []),
      ...lanesOfRefs.map(({ lane }) => lane),
    ],
    commits,
    writers: [...new Set(commits.map(({ writer }) => writer))].sort((one, other) =>
      one === OURS ? -1 : other === OURS ? 1 : one < other ? -1 : 1,
    ),
    refs: lanesOfRefs,
    conflicts: refused,
  };
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

// The queue over time -------------------------------------------------------------------------------------------------

interface AttemptLike {
  task_id: string;
  attempt: number;
  state: string;
  optimizer_id: string;
  started_at: number;
  ended_at: number | null;
  table: string;
  kind: string;
  resource_group: string;
}
export interface WaitingLike {
  task_id: string;
  table: string;
  kind: string;
  resource_group: string;
  created_at: number;
  reasons: string[];
  starts_at: number | null;
}
interface GroupLike {
  name: string;
  waiting: number;
  held: { tasks: number; cores: number; memory_bytes: number };
  definition: { tasks_max: number | null; cores: number | null; memory_bytes: number | null } | null;
}

export interface Work {
  lane: number;
  from: number;
  to: number;
  state: string;
  group: string;
  /** The optimizer at work, or nothing while it waits. */
  optimizer: string;
  table: string;
  task: string;
  kind: string;
  said: string;
}
export interface Gantt {
  /** What each lane is of: a group with what it may hold, an optimizer in it, or what waits for one. */
  rows: { label: string; isGroup: boolean }[];
  bars: Work[];
}

export const WAITS = "waits";
export const EXPECTED = "expected start";

/** A group with what it holds of what it may. */
export function groupWords({ name, held, waiting, definition }: GroupLike): string {
  const of = (amount: string, most: string | null) => (most === null ? amount : `${amount} of ${most}`);
  const tasks = definition?.tasks_max ?? null;
  const cores = definition?.cores ?? null;
  const memory = definition?.memory_bytes ?? null;
  return [
    `${name}: ${tasks === null ? plural(held.tasks, "task") : `${count(held.tasks)} of ${plural(tasks, "task")}`}`,
    ...(cores === null ? [] : [`${of(count(held.cores), count(cores))} cores`]),
    ...(memory === null ? [] : [of(bytes(held.memory_bytes), bytes(memory))]),
    ...(waiting > 0 ? [`${count(waiting)} waiting`] : []),
  ].join(", ");
}

/** Those tries that were at work since a time. */
export function since<T extends { ended_at: number | null }>(attempts: T[], from: number): T[] {
  return attempts.filter((each) => each.ended_at === null || each.ended_at >= from);
}

/** Tries by group and optimizer, and below them what waits in the group with why and until about when. */
export function gantt(attempts: AttemptLike[], waiting: WaitingLike[], groups: GroupLike[], now: number): Gantt {
  const rows: Gantt["rows"] = [];
  const bars: Work[] = [];
  const known = new Map(groups.map((group) => [group.name, group]));
  const names = [...new Set([...attempts, ...waiting].map((each) => each.resource_group))].sort();
  for (const group of names) {
    const about = known.get(group);
    rows.push({ label: about ? groupWords(about) : group, isGroup: true });
    const ours = attempts.filter((each) => each.resource_group === group);
    for (const optimizer of [...new Set(ours.map((each) => each.optimizer_id))].sort()) {
      const its = ours.filter((each) => each.optimizer_id === optimizer);
      const spans = its.map((each, item) => ({
        lower: each.started_at,
        upper: Math.max(each.ended_at ?? now, each.started_at),
        item,
      }));
      const laid = lanes(spans, true);
      for (const { lower, upper, lane, item } of laid.spans) {
        const one = its[item];
        if (one)
          bars.push({
            lane: rows.length + lane,
            from: lower,
            to: upper,
            state: one.state,
            group,
            optimizer,
            table: one.table,
            task: one.task_id,
            kind: one.kind,
            said: one.attempt > 1 ? `try ${one.attempt}` : "",
          });
      }
      for (let lane = 0; lane < laid.lanes; lane += 1)
        rows.push({ label: lane === 0 ? optimizer : "", isGroup: false });
    }
    for (const one of waiting.filter((each) => each.resource_group === group)) {
      const bar = {
        lane: rows.length,
        group,
        optimizer: "",
        table: one.table,
        task: one.task_id,
        kind: one.kind,
        said: one.reasons.join("; "),
      };
      bars.push({ ...bar, from: one.created_at, to: Math.max(now, one.created_at), state: WAITS });
      if (one.starts_at !== null && one.starts_at > now)
        bars.push({ ...bar, from: now, to: one.starts_at, state: EXPECTED });
      rows.push({ label: [`waits: ${one.table}`, one.reasons.join("; ")].filter(Boolean).join(": "), isGroup: false });
    }
  }
  return { rows, bars };
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

/** A figure that may be below zero, or not known. */
export function signed(value: number | null | undefined, show: (value: number) => string): string {
  if (value === null || value === undefined) return "not known";
  return value < 0 ? `-${show(Math.round(-value))}` : show(Math.round(value));
}

const LABEL_WIDTH_MIN = 36;
const OUT_OF_SIGHT = -1000;

/** Where a label goes that has this much room: out of sight where a number would be cut off, since 100 would read 1. */
export function labelPlace(room: { width: number }): { x?: number; y?: number } {
  return room.width < LABEL_WIDTH_MIN ? { x: OUT_OF_SIGHT, y: OUT_OF_SIGHT } : {};
}
