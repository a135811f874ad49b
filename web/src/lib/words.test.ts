import { expect, test } from "vitest";
import type { Halt } from "../api/queries";
import { haltOver, haltWords } from "./halts";
import { eventsOf } from "./live";
import { beforeAfter, changes, changeWords, committed, compared, otherFigures, seenAround } from "./predictions";
import { fleetSearch, policySearch, tableSearch, tasksSearch } from "./search";

test("before and after are found by their names, and by the parts of both", () => {
  expect(beforeAfter({ kind: "x", data_files_before: 12, data_files_after: 1, call: "CALL" })).toEqual([
    { name: "data_files", before: 12, after: 1 },
  ]);
  expect(beforeAfter({ kind: "x", before: { listed: 9, opened: 3 }, after: { listed: 2, opened: 1 } })).toEqual([
    { name: "listed", before: 9, after: 2 },
    { name: "opened", before: 3, after: 1 },
  ]);
  // what goes, of what there was
  expect(beforeAfter({ kind: "expire_data", files: 4, files_before: 10 })).toEqual([
    { name: "files", before: 10, after: 6 },
  ]);
});

test("all other figures are told once", () => {
  const figures = otherFigures({
    kind: "x",
    files: 4,
    files_before: 10,
    input_bytes: 2048,
    call: "CALL",
    is_moved: true,
    cpu_ms: 1500,
  });
  expect(figures).toEqual([
    { name: "input size", value: "2 KiB" },
    { name: "is moved", value: "yes" },
    { name: "cpu time", value: "1.5 s" },
  ]);
});

test("what was predicted stands beside what was measured", () => {
  const rows = compared(
    {
      input_files: 12,
      output_files: 1,
      input_bytes: 2048,
      records: 100,
      estimate: { output_bytes: 1024, cpu_ms: 500 },
    },
    {
      attempts: 1,
      input_files: 11,
      input_bytes: 2047,
      output_files: 2,
      output_bytes: 1000,
      records: 99,
      cpu_ms: 700,
      proof_cpu_ms: 10,
      wasted_bytes: 5,
      wall_ms: 2000,
    },
  );
  expect(rows.map(({ predicted, measured }) => [predicted, measured])).toEqual([
    ["12", "11"],
    ["1", "2"],
    ["2 KiB", "2 KiB"],
    ["1 KiB", "1,000 B"],
    ["100", "99"],
    ["500 ms", "700 ms"],
    ["–", "10 ms"],
    ["–", "5 B"],
    ["–", "2 s"],
  ]);
});

const halt = (kind: Halt["kind"], name: string | null, state: Halt["state"], uuid: string | null = null): Halt => ({
  kind,
  name,
  catalog: kind === "table" ? "lake" : null,
  uuid,
  state,
  why: "a fire",
  by: "owner",
  since: 0,
  running: 0,
  verifying: 0,
});

test("of several halts the one counts that lets least go on", () => {
  const halts = [
    halt("all", null, "paused"),
    halt("table", "lake.db.logs", "stopped", "u1"),
    halt("group", "big", "draining"),
  ];
  expect(haltOver(halts, { catalog: "lake", uuid: "u1" })?.state).toBe("stopped");
  expect(haltOver(halts, { catalog: "other", uuid: "u1", resource_group: "big" })?.state).toBe("draining");
  expect(haltOver(halts, { catalog: "lake", uuid: "u2" })?.state).toBe("paused");
  expect(haltOver(halts.slice(1), { catalog: "lake", uuid: "u2" })).toBeUndefined();
  expect(haltOver([halt("catalog", "lake", "paused")], { catalog: "lake", uuid: "u2" })?.kind).toBe("catalog");
  expect(haltWords(halt("table", "lake.db.logs", "stopped"))).toBe("table lake.db.logs is stopped by owner: a fire");
});

test("events of a stream come whole, also where it was cut in the middle", () => {
  const stream = 'id: 1\nevent: started\ndata: {"a":1}\n\n: beat\n\nid: 2\ndata: {"b":\ndata: 2}\n\nid: 3\nda';
  const { events, rest } = eventsOf(stream);
  expect(events).toEqual([
    { id: "1", data: '{"a":1}' },
    { id: "2", data: '{"b":\n2}' },
  ]);
  expect(eventsOf(`${rest}ta: {}\n\n`).events).toEqual([{ id: "3", data: "{}" }]);
});

test("an address has nothing but what is known", () => {
  expect(
    fleetSearch({ sort: "-bytes", search: 12, mode: "off<script>", failing: "true", poor: 1, other: "x" }),
  ).toEqual({
    sort: "-bytes",
    search: "12",
    catalog: undefined,
    namespace: undefined,
    mode: undefined,
    failing: true,
    poor: undefined,
  });
  expect(tableSearch({ tab: "files", column: ["a", 3, "b", "c"], catalog: "lake" })).toMatchObject({
    tab: "files",
    column: ["a", "b"],
    catalog: "lake",
  });
  expect(tableSearch({ tab: "../x", column: "a" })).toMatchObject({ tab: undefined, column: ["a"] });
  expect(tasksSearch({ state: "in_doubt" })).toEqual({ state: "in_doubt" });
  expect(tasksSearch({ state: "gone" })).toEqual({ state: undefined });
  expect(policySearch({ tab: "edit", revision: "3" })).toEqual({ tab: "edit", revision: 3 });
  expect(policySearch({ revision: -1 }).revision).toBeUndefined();
});

const rewrite = {
  kind: "rewrite_data_files",
  data_files_before: 12,
  data_files_after: 1,
  input_bytes: 1000,
  estimate: {
    output_bytes: 900,
    cpu_ms: 1,
    lookups: [{ column: "id", partition: "", mean_before: 11.5, mean_after: 1 }],
  },
};
const snapshot = (sequence: number, task: string | null, summary: Record<string, string>) => ({
  sequence_number: sequence,
  task_id: task,
  summary,
});
const around = { before: null, after: null };
const shown = (found: ReturnType<typeof changes>) =>
  found.map(({ name, before, predicted, measured, write }) => [
    name,
    ...[before, predicted, measured].map((value) => (value === null ? null : write(value))),
  ]);

test("before its commit is what was afterwards, without what it added and with what it took away", () => {
  const commits = committed(
    [
      // a writer had added one file: 13 of 1,100 bytes, of which the task replaced 12 by one of 850
      snapshot(9, "task", {
        "total-data-files": "2",
        "added-data-files": "1",
        "deleted-data-files": "12",
        "total-files-size": "950",
        "added-files-size": "850",
        "removed-files-size": "1000",
        "total-delete-files": "0",
        "removed-delete-files": "3",
      }),
      snapshot(8, null, { "total-data-files": "13" }),
    ],
    "task",
  );
  expect(commits).toEqual({
    before: { files: 13, bytes: 1100, deletes: 3 },
    after: { files: 2, bytes: 950, deletes: 0 },
  });
  const found = changes(rewrite, commits, { before: { at: 1, share: 1 }, after: { at: 2, share: 0 } });
  expect(shown(found)).toEqual([
    ["Data files", "13", "1", "2"],
    ["Size", "1.1 KiB", "1,000 B", "950 B"],
    ["Delete files", "3", null, "0"],
    ["Small files, as observed", "100 %", null, "0 %"],
    ["Files with one value of id, in the table", "11.5", "1", null],
  ]);
  expect(changeWords(found, { cpu_ms: 1500, written_bytes: 2048 })).toBe(
    "Data files: 13 before, 2 afterwards. It took 1.5 s of CPU and wrote 2 KiB.",
  );
});

test("what is not known is left out, and what was not measured is said to be predicted", () => {
  expect(committed([snapshot(1, "other", {})], "task")).toBeNull();
  const withoutSizes = { "total-files-size": "5", "total-data-files": "1", "added-data-files": "1" };
  expect(committed([snapshot(1, "task", withoutSizes)], "task")?.before).toEqual({
    files: 0,
    bytes: null,
    deletes: null,
  });
  const found = changes({ ...rewrite, estimate: null }, null, around);
  expect(shown(found)).toEqual([["Data files", "12", "1", null]]);
  expect(changeWords(found, null)).toBe("Data files: 12 before, 1 afterwards, as predicted.");
  // 12 as planned, of which its report says that 10 became 2: its commits have expired
  const expired = changes({ ...rewrite, estimate: null }, null, around, { input_files: 10, output_files: 2 });
  expect(shown(expired)).toEqual([["Data files", "12", "1", "4"]]);
  const manifests = changes({ kind: "x", manifests_before: 40, manifests_after: 3 }, null, around);
  expect(shown(manifests)).toEqual([["manifests", "40", "3", null]]);
  expect(changeWords([], null)).toBe("");
});

test("of several commits the first says what was before", () => {
  const commits = committed(
    [
      snapshot(5, "task", { "total-data-files": "3", "added-data-files": "1", "deleted-data-files": "4" }),
      snapshot(3, "task", { "total-data-files": "6", "added-data-files": "1", "deleted-data-files": "5" }),
    ],
    "task",
  );
  expect([commits?.before.files, commits?.after.files, commits?.before.bytes]).toEqual([10, 3, null]);
});

test("the looks around a task are the last one before it and the first one after it", () => {
  const looks = [10, 20, 30, 40].map((at) => ({ at, files: 10, small_files: at / 10 }));
  expect(seenAround(looks, 25, 35)).toEqual({ before: { at: 20, share: 0.2 }, after: { at: 40, share: 0.4 } });
  expect(seenAround(looks, 5, null)).toEqual({ before: null, after: null });
});
