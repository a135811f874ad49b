// A waterfall of what was saved and spent, by cause.

import { expect, test } from "vitest";
import { floating, type Step, steps } from "./causes";

const CAUSES = [
  { cause: "layout", saved_cpu_ms: 100, cpu_ms: 30 },
  { cause: "compaction", saved_cpu_ms: null, cpu_ms: 90 },
  { cause: "analysis", cpu_ms: 0 },
];

test("a waterfall has a step for what is known of each cause, and what is left", () => {
  expect(steps(CAUSES)).toEqual([
    { name: "layout, saved", kind: "saved", value: 100 },
    { name: "layout, spent", kind: "spent", value: -30 },
    { name: "compaction, spent", kind: "spent", value: -90 },
    { name: "net", kind: "net", value: -20 },
  ]);
  expect(steps(CAUSES.slice(1)).map((step) => step.kind)).toEqual(["spent"]);
});

test("each bar of a waterfall begins where the one before it ends, also across zero", () => {
  const ends = (found: Step[]) => floating(found).map(({ base, above, below }) => [base + 0, above, below]);
  expect(ends(steps(CAUSES))).toEqual([
    [0, 100, 0],
    [70, 30, 0],
    [0, 70, -20],
    [0, 0, -20],
  ]);
  expect(ends(steps([{ cause: "layout", saved_cpu_ms: -40, cpu_ms: 10 }]))).toEqual([
    [0, 0, -40],
    [-40, 0, -10],
    [0, 0, -50],
  ]);
});
