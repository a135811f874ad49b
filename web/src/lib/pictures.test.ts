// Each picture against numbers counted by hand.

import { expect, test } from "vitest";
import type { BoundsItem } from "../api/client";
import * as pictures from "./pictures";
import { storageParts } from "./storage";

const DAY = 86_400_000;

function file(...bounds: [min: string, max: string, lower?: number, upper?: number][]): BoundsItem {
  return {
    path: "p",
    partition: "",
    size_bytes: 1,
    records: 1,
    bounds: bounds.map(([min, max, lower, upper]) => ({ min, max, lower: lower ?? null, upper: upper ?? null })),
  };
}
const numbers = (lower: number, upper: number): [string, string, number, number] => [
  String(lower),
  String(upper),
  lower,
  upper,
];

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

const deepest = ({ depth }: pictures.Overlap) => Math.max(...depth.map(([, files]) => files));

test("files that meet stand in lanes of their own; the depth counts them, ends included", () => {
  // 0..10, 5..15, 11..20, 15..30: at 5..10 two, at 11..15 two, at 15 three
  const items = [file(numbers(11, 20)), file(numbers(0, 10)), file(numbers(15, 30)), file(numbers(5, 15))];
  const found = pictures.overlap(items, 0);
  expect(found.spans.map(({ lower, upper, lane, item }) => [lower, upper, lane, item])).toEqual([
    [0, 10, 0, 1],
    [5, 15, 1, 3],
    [11, 20, 0, 0],
    [15, 30, 2, 2],
  ]);
  expect([found.lanes, deepest(found), found.isRanked]).toEqual([3, 3, false]);
  expect(found.depth).toEqual([
    [0, 1],
    [5, 2],
    [10, 1],
    [11, 2],
    [15, 3],
    [20, 1],
    [30, 0],
  ]);
});

test("300 files that all have all values are 300 deep; sorted ones are one deep", () => {
  const mixed = pictures.overlap(
    Array.from({ length: 300 }, (_none, at) => file(numbers(at, 10_000 + at))),
    0,
  );
  expect([mixed.lanes, deepest(mixed)]).toEqual([300, 300]);
  const sorted = pictures.overlap(
    Array.from({ length: 300 }, (_none, at) => file(numbers(10 * at, 10 * at + 9))),
    0,
  );
  expect([sorted.lanes, deepest(sorted)]).toEqual([1, 1]);
});

test("texts stand by their order", () => {
  const found = pictures.overlap([file(["beer", "wine"]), file(["ale", "beer"])], 0);
  // ale 0, beer 1, wine 2
  expect(found.spans.map(({ lower, upper, item }) => [lower, upper, item])).toEqual([
    [0, 1, 1],
    [1, 2, 0],
  ]);
  expect([deepest(found), found.isRanked]).toEqual([2, true]);
});

test("rectangles are over both columns", () => {
  const { found } = pictures.rectangles([
    file(numbers(0, 10), numbers(100, 200)),
    file(numbers(20, 30), numbers(150, 160)),
  ]);
  expect(found).toEqual([
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
  });
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

test("commits come in the order of time, each in the lane of its operation", () => {
  const snapshot = (id: string, at: number, operation: string | null, task: string | null, refs: string[] = []) => ({
    snapshot_id: id,
    committed_at: at,
    operation,
    task_id: task,
    refs,
    is_ancestor: true,
  });
  const found = pictures.commits([
    snapshot("2", 20, "replace", "task-1", ["main", "v1"]),
    snapshot("1", 10, "append", null),
    snapshot("3", 30, "invented", null),
  ]);
  expect(found.map(({ id, lane, isOurs, refs }) => [id, lane, isOurs, refs])).toEqual([
    ["1", 0, false, ""],
    ["2", 3, true, "main, v1"],
    ["3", 4, false, ""],
  ]);
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

test("what is not over runs until now, by group and by age", () => {
  const task = (id: string, group: string, state: string, from: number, to: number) => ({
    task_id: id,
    table: "t",
    state,
    resource_group: group,
    created_at: from,
    updated_at: to,
  });
  const found = pictures.runs(
    [task("1", "b", "running", 10, 11), task("2", "a", "succeeded", 30, 40), task("3", "a", "queued", 20, 20)],
    100,
  );
  expect(found.map(({ id, lane, from, to }) => [id, lane, from, to])).toEqual([
    ["3", 0, 20, 100],
    ["2", 1, 30, 40],
    ["1", 2, 10, 100],
  ]);
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
