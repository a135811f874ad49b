// Each picture against numbers counted by hand.

import { expect, test } from "vitest";
import type { BoundsItem } from "../api/client";
import * as pictures from "./pictures";
import { storageParts } from "./storage";

const DAY = 86_400_000;

type Drawn = [min: string, max: string, ranks: [number, number], lower?: number, upper?: number];

function file(...bounds: Drawn[]): BoundsItem {
  return {
    path: "p",
    partition: "",
    size_bytes: 1,
    records: 1,
    bounds: bounds.map(([min, max, [least, greatest], lower, upper]) => ({
      min,
      max,
      lower: lower ?? null,
      upper: upper ?? null,
      min_rank: least,
      max_rank: greatest,
    })),
  };
}
const numbers = (lower: number, upper: number): Drawn => [String(lower), String(upper), [lower, upper], lower, upper];

test("the fleet's areas are the sizes, and namespaces the sums of their tables", () => {
  const table = (name: string, namespace: string, size: number | null, score: number | null) => ({
    name: `${namespace}.${name}`,
    namespace,
    catalog: "lake",
    uuid: name,
    figures: size === null ? null : { size_bytes: size },
    health: score === null ? null : { score, grade: "poor" },
  });
  const tree = pictures.treeOf([
    table("a", "lake.x", 10, 50),
    table("b", "lake.y", 70, null),
    table("c", "lake.x", 30, 10),
    table("empty", "lake.x", 0, 100),
    table("unseen", "lake.z", null, null),
  ]);
  expect(tree.map(({ name, value }) => [name, value])).toEqual([
    ["lake.y", 70],
    ["lake.x", 40],
  ]);
  expect(tree[1]?.children.map(({ name, value, health }) => [name, value, health])).toEqual([
    ["c", 30, 10],
    ["a", 10, 50],
  ]);
  expect(tree[0]?.children[0]?.grade).toBe("unknown");
});

test("each bucket of sizes is one step wide", () => {
  const bars = pictures.histogramBars([
    { from_bytes: 0, to_bytes: 1, files: 1, bytes: 0 },
    { from_bytes: 1_048_576, to_bytes: 2_097_152, files: 12, bytes: 18_000_000 },
  ]);
  expect(bars.map(({ from, to, files }) => [from, to, files])).toEqual([
    [0, 0, 1],
    [20, 21, 12],
  ]);
  expect(bars[1]?.label).toBe("1 MiB to 2 MiB");
});

const overlap = (items: BoundsItem[], type = "long") => {
  const { spans, scale } = pictures.lay(items, 0, type);
  const found = pictures.lanes(spans);
  const depth = pictures.depths(spans);
  return { ...found, scale, depth, deepest: Math.max(...depth.map(({ here }) => here)) };
};

test("files that meet stand in lanes of their own; the depth counts them, ends included", () => {
  // 0..10, 5..15, 11..20, 15..30: at 5..10 two, at 11..15 two, at 15 three, behind it two again until 20
  const items = [file(numbers(11, 20)), file(numbers(0, 10)), file(numbers(15, 30)), file(numbers(5, 15))];
  const found = overlap(items);
  expect(found.spans.map(({ lower, upper, lane, item }) => [lower, upper, lane, item])).toEqual([
    [0, 10, 0, 1],
    [5, 15, 1, 3],
    [11, 20, 0, 0],
    [15, 30, 2, 2],
  ]);
  expect([found.lanes, found.deepest, found.scale]).toEqual([3, 3, "number"]);
  expect(found.depth.map(({ at, here, after }) => [at, here, after])).toEqual([
    [0, 1, 1],
    [5, 2, 2],
    [10, 2, 1],
    [11, 2, 2],
    [15, 3, 2],
    [20, 2, 1],
    [30, 1, 0],
  ]);
});

test("300 files that all have all values are 300 deep; sorted ones are one deep", () => {
  const mixed = overlap(Array.from({ length: 300 }, (_none, at) => file(numbers(at, 10_000 + at))));
  expect([mixed.lanes, mixed.deepest]).toEqual([300, 300]);
  const sorted = overlap(Array.from({ length: 300 }, (_none, at) => file(numbers(10 * at, 10 * at + 9))));
  expect([sorted.lanes, sorted.deepest]).toEqual([1, 1]);
});

test("texts stand by the order that the server gives them, and are named", () => {
  const items = [file(["beer", "wine", [1, 2]]), file(["ale", "beer", [0, 1]])];
  const laid = pictures.lay(items, 0, "string");
  expect([laid.scale, laid.names]).toEqual(["rank", ["ale", "beer", "wine"]]);
  expect(laid.spans).toEqual([
    { lower: 1, upper: 2, item: 0 },
    { lower: 0, upper: 1, item: 1 },
  ]);
});

test("one number that is infinite gives all of the column ranks; so does asking for even steps", () => {
  const items = [file(["1.5", "Infinity", [0, 2], 1.5]), file(["1.5", "9.5", [0, 1], 1.5, 9.5])];
  expect(pictures.lay(items, 0, "double").spans.map(({ lower, upper }) => [lower, upper])).toEqual([
    [0, 2],
    [0, 1],
  ]);
  expect(pictures.lay([file(numbers(5, 700))], 0, "long", true).scale).toBe("rank");
  expect(pictures.lay([file(["false", "true", [0, 1], 0, 1])], 0, "boolean").scale).toBe("rank");
});

test("dates and times stand on a calendar as far as there is one", () => {
  const day = pictures.lay([file(["2026-01-01", "2026-01-10", [0, 1], 20_454, 20_463])], 0, "date");
  expect([day.scale, day.spans[0]?.lower, day.spans[0]?.upper]).toEqual([
    "time",
    Date.UTC(2026, 0, 1),
    Date.UTC(2026, 0, 10),
  ]);
  const micros = 1_767_225_600_000_000;
  const at = pictures.lay([file(["…", "…", [0, 0], micros, micros])], 0, "timestamptz");
  expect(at.spans[0]?.lower).toBe(Date.UTC(2026, 0, 1));
  const far = pictures.lay([file(["-200000000", "0", [0, 1], -200_000_000, 0])], 0, "date");
  expect([far.scale, far.spans[0]?.upper]).toEqual(["rank", 1]);
  expect(pictures.lay([file(["00:00:01", "00:00:02", [0, 1], 1e6, 2e6])], 0, "time").scale).toBe("number");
});

test("what a lookup opens is said of all files, those without bounds and without values among them", () => {
  const told = { column: "id", files: 300, unknown_files: 0, null_files: 0, depth_max: 297, depth_mean: 290.51 };
  expect(pictures.overlapWords(told)).toEqual(["A lookup opens 297 of 300 files at worst, 290.5 on average."]);
  expect(pictures.overlapWords({ ...told, unknown_files: 1, null_files: 1_000 })).toEqual([
    "A lookup opens 297 of 1,300 files at worst, 290.5 on average.",
    "1 file without bounds: every lookup opens them.",
    "1,000 files with nothing but NULL: no lookup of a value opens them.",
  ]);
  expect(pictures.overlapWords({ ...told, unknown_files: 300 })).toEqual([
    "A lookup opens 300 of 300 files: none has bounds of this column.",
  ]);
  expect(pictures.overlapWords({ ...told, files: 0, null_files: 2 })[0]).toBe(
    "A lookup of a value opens none of 2 files.",
  );
});

test("rectangles are over both columns", () => {
  const items = [file(numbers(0, 10), numbers(100, 200)), file(numbers(20, 30), numbers(150, 160))];
  expect(pictures.rectangles(pictures.lay(items, 0, "long"), pictures.lay(items, 1, "long"))).toEqual([
    { left: 0, right: 10, bottom: 100, top: 200, item: 0 },
    { left: 20, right: 30, bottom: 150, top: 160, item: 1 },
  ]);
});

const partition = (path: string, files: number, small = 0, optimized: number | null = null) => ({
  path,
  data_files: files,
  small_files: small,
  delete_files: 0,
  size_bytes: 1,
  optimized_at: optimized,
});

test("days make a calendar, in which those of one day add up", () => {
  const found = pictures.heatCells(
    [
      partition("day=2026-01-31/city=a", 3),
      partition("day=2026-01-31/city=b", 4),
      partition("day=2025-12-31/city=a", 1),
    ],
    "files",
    0,
  );
  expect(found).toEqual({
    shape: "days",
    years: ["2025", "2026"],
    cells: [
      { day: "2025-12-31", value: 1 },
      { day: "2026-01-31", value: 7 },
    ],
    undated: 0,
  });
});

test("hours are of their day; a few partitions without a date do not take the calendar away", () => {
  const hours = [partition("at=2026-01-31-05", 3), partition("at=2026-01-31-23", 4), partition("at=null", 9)];
  expect(pictures.heatCells(hours, "files", 0)).toEqual({
    shape: "days",
    years: ["2026"],
    cells: [{ day: "2026-01-31", value: 7 }],
    undated: 1,
  });
  expect(pictures.heatCells([...hours, partition("city=a", 1), partition("city=b", 1)], "files", 0).shape).toBe("grid");
});

test("months make a row a year, and shares do not add up", () => {
  const found = pictures.heatCells(
    [partition("m=2026-02", 4, 1), partition("m=2025-12", 10, 10), partition("m=2026-02", 2, 1)],
    "small share",
    0,
  );
  expect(found).toMatchObject({ shape: "months", years: ["2025", "2026"] });
  expect(found.cells).toEqual([
    { column: 11, row: 0, value: 100, name: "2025-12" },
    { column: 1, row: 1, value: 50, name: "2026-02" },
  ]);
});

test("other partitions stand in their own order, and what is not known is left out", () => {
  const found = pictures.heatCells(
    [partition("city=a", 1, 0, 0), partition("city=b", 1), partition("", 1, 0, 2 * DAY)],
    "days since optimized",
    5 * DAY,
  );
  expect(found.cells).toEqual([
    { column: 0, row: 0, value: 5, name: "city=a" },
    { column: 1, row: 0, value: 3, name: "(unpartitioned)" },
  ]);
  const many = pictures.heatCells(
    Array.from({ length: 25 }, (_none, at) => partition(`c=${at}`, at)),
    "files",
    0,
  );
  expect(many.cells[24]).toEqual({ column: 0, row: 1, value: 24, name: "c=24" });
});

const snapshot = (
  id: string,
  at: number,
  operation: string | null,
  more: Partial<Parameters<typeof pictures.timeline>[0][number]> = {},
) => ({
  snapshot_id: id,
  parent_id: null,
  committed_at: at,
  operation,
  task_id: null,
  refs: [],
  is_ancestor: true,
  summary: {},
  ...more,
});

test("commits come in the order of time, by operation and writer, ours first", () => {
  const found = pictures.timeline(
    [
      snapshot("2", 20, "replace", { task_id: "task-1", refs: ["main", "v1"] }),
      snapshot("1", 10, "append", { summary: { "engine-name": "spark" } }),
      snapshot("3", 30, "invented"),
    ],
    [],
    [],
  );
  expect(found.commits.map(({ id, operation, writer, refs }) => [id, operation, writer, refs])).toEqual([
    ["1", "append", "spark", []],
    ["2", "replace", "icewright", ["main", "v1"]],
    ["3", "other", "a writer", []],
  ]);
  expect(found.writers).toEqual(["icewright", "a writer", "spark"]);
  expect(found.lanes).toEqual(["append", "replace", "other"]);
});

test("a branch has its own commits and the one where it left; a tag has one; main has no lane; conflicts have one", () => {
  // 1 - 2 - 5 are the current history, 3 - 4 a branch from 2
  const found = pictures.timeline(
    [
      snapshot("1", 10, "append"),
      snapshot("2", 20, "append", { parent_id: "1" }),
      snapshot("3", 30, "append", { parent_id: "2", is_ancestor: false }),
      snapshot("4", 40, "append", { parent_id: "3", is_ancestor: false }),
      snapshot("5", 50, "append", { parent_id: "2" }),
    ],
    [
      { name: "audit", type: "branch", snapshot_id: "4" },
      { name: "gone", type: "tag", snapshot_id: "0" },
      { name: "main", type: "branch", snapshot_id: "5" },
      { name: "v1", type: "tag", snapshot_id: "4" },
    ],
    [{ task_id: "t", attempt: 2, optimizer_id: "o", kind: "rewrite_data_files", started_at: 25, ended_at: 45 }],
  );
  expect(found.refs.map(({ lane, points }) => [lane, points.map(({ id }) => id)])).toEqual([
    ["branch audit", ["2", "3", "4"]],
    ["tag v1", ["4"]],
  ]);
  expect(found.lanes).toEqual(["append", "conflicts", "branch audit", "tag v1"]);
  expect(found.conflicts).toEqual([{ at: 45, task: "t", said: "rewrite data files, try 2, by o" }]);
});

test("the storage's parts begin where the one before ended", () => {
  const amount = (size: number) => ({ files: 1, size_bytes: size, unsized: 0 });
  const parts = storageParts({
    classes: [
      { file_class: "data" as const, live: amount(100), by_refs: amount(20), by_history: amount(300) },
      { file_class: "metadata" as const, live: amount(1), by_refs: amount(2), by_history: amount(3) },
    ],
  });
  expect(pictures.waterfall(parts).map(({ bytes, from }) => [from, bytes])).toEqual([
    [0, 101],
    [101, 22],
    [123, 303],
  ]);
});

test("tries stand by group and optimizer, in as few lanes as they fit; what waits stands below with why", () => {
  const attempt = (task: string, optimizer: string, from: number, to: number | null, group = "b") => ({
    task_id: task,
    attempt: 1,
    state: to === null ? "running" : "committed",
    optimizer_id: optimizer,
    started_at: from,
    ended_at: to,
    table: `of ${task}`,
    kind: "rewrite_data_files",
    resource_group: group,
  });
  const waiting = {
    task_id: "w",
    table: "of w",
    kind: "expire_snapshots",
    resource_group: "b",
    created_at: 50,
    reasons: ["all 2 tasks of the group are taken"],
    starts_at: 150,
  };
  const group = {
    name: "b",
    waiting: 1,
    held: { tasks: 2, cores: 4, memory_bytes: 0 },
    definition: { tasks_max: 2, cores: 8, memory_bytes: null },
  };
  const found = pictures.gantt(
    [
      attempt("1", "one", 0, 10),
      attempt("2", "one", 5, null),
      attempt("3", "one", 10, 30),
      attempt("4", "two", 1, 2, "a"),
    ],
    [waiting, { ...waiting, task_id: "x", starts_at: null, reasons: [] }],
    [group],
    100,
  );
  expect(found.rows).toEqual([
    { label: "a", isGroup: true },
    { label: "two", isGroup: false },
    { label: "b: 2 of 2 tasks, 4 of 8 cores, 1 waiting", isGroup: true },
    { label: "one", isGroup: false },
    { label: "", isGroup: false },
    { label: "waits: of w: all 2 tasks of the group are taken", isGroup: false },
    { label: "waits: of w", isGroup: false },
  ]);
  expect(found.bars.map(({ task, lane, from, to, state }) => [task, lane, from, to, state])).toEqual([
    ["4", 1, 1, 2, "committed"],
    ["1", 3, 0, 10, "committed"],
    ["2", 4, 5, 100, "running"],
    ["3", 3, 10, 30, "committed"],
    ["w", 5, 50, 100, "waits"],
    ["w", 5, 100, 150, "expected start"],
    ["x", 6, 50, 100, "waits"],
  ]);
  expect(found.bars[4]?.said).toBe("all 2 tasks of the group are taken");
  const times = [{ ended_at: 10 }, { ended_at: 20 }, { ended_at: null }];
  expect(pictures.since(times, 20)).toEqual([{ ended_at: 20 }, { ended_at: null }]);
});

test("the benefit sums up what was measured, of rewrites of data files alone", () => {
  const measured = (before: number, after: number, cpu: number) => ({
    input_files: before,
    output_files: after,
    input_bytes: 1_000,
    output_bytes: 900,
    cpu_ms: cpu,
    wasted_bytes: 7,
  });
  const total = pictures.benefit([
    {
      prediction: { kind: "rewrite_data_files", estimate: { output_bytes: 950, cpu_ms: 50 } },
      measured: measured(300, 20, 60),
    },
    { prediction: { kind: "rewrite_data_files", estimate: null }, measured: measured(12, 1, 4) },
    { prediction: { kind: "rewrite_data_files" }, measured: null },
    { prediction: { kind: "expire_snapshots" }, measured: measured(1, 1, 1) },
  ]);
  expect(total).toEqual({
    tasks: 2,
    filesBefore: 312,
    filesAfter: 21,
    bytesRead: 2_000,
    bytesWritten: 1_800,
    bytesPredicted: 950,
    cpuMs: 64,
    cpuPredictedMs: 50,
    wastedBytes: 14,
  });
});

test("what is not known is not said to be zero, and a loss is below it", () => {
  const show = (value: number) => `${value} B`;
  expect([null, undefined, 0, 1.4, -2.6].map((value) => pictures.signed(value, show))).toEqual([
    "not known",
    "not known",
    "0 B",
    "1 B",
    "-3 B",
  ]);
});

test("a label of the map is shown whole, or not at all", () => {
  expect(pictures.labelPlace({ width: 36 })).toEqual({});
  expect(pictures.labelPlace({ width: 35 }).x).toBeLessThan(0);
});
