import { expect, test } from "vitest";
import { keepDigits } from "../api/client";
import { ago, bytes, count, duration, percent, plural, short, utc, visible } from "./format";

test("characters that hide or re-order are shown by their code, all else stays", () => {
  expect(visible("\u202egnp.exe")).toBe("\\u{202e}gnp.exe");
  expect(visible("a\u0000b\u2028c\u200bd")).toBe("a\\u{0}b\\u{2028}c\\u{200b}d");
  expect(visible("表 größe <img src=x>")).toBe("表 größe <img src=x>");
});

test("sizes are written in the unit that fits", () => {
  expect([0, 1023, 1024, 1536, 12_000_000, 120 * 1024 ** 2, 2 ** 50].map(bytes)).toEqual([
    "0 B",
    "1,023 B",
    "1 KiB",
    "1.5 KiB",
    "11.4 MiB",
    "120 MiB",
    "1 PiB",
  ]);
});

test("times are told by the clock of the server", () => {
  const now = 1_000_000_000;
  expect([0, 59_000, 60_000, 7_200_000, 172_800_000, -30_000].map((before) => ago(now - before, now))).toEqual([
    "0 s ago",
    "59 s ago",
    "1 min ago",
    "2 h ago",
    "2 days ago",
    "in 30 s",
  ]);
  expect([5, 1_500, 60_000, 61_000, 3_660_000, 90_000_000].map(duration)).toEqual([
    "5 ms",
    "1.5 s",
    "1 min",
    "1 min 1 s",
    "1 h 1 min",
    "1 d 1 h",
  ]);
  expect(utc(0)).toBe("1970-01-01 00:00:00 UTC");
});

test("numbers and ids", () => {
  expect([count(1_200_000), plural(1, "file"), plural(0, "file"), percent(0.5), percent(0.012)]).toEqual([
    "1,200,000",
    "1 file",
    "0 files",
    "50 %",
    "1.2 %",
  ]);
  expect([short("task-000002"), short("0b9a1c2d-3e4f-5061")]).toEqual(["task-000002", "0b9a1c2d…"]);
});

test("integers that JavaScript cannot hold keep their digits, in numbers alone", () => {
  const text =
    '{"a": 8273648273648123456, "b": -8273648273648123457, "c": 12, "d": "8273648273648123456 \\" 9999999999999999999", "e": 0.1234567890123456, "f": 9007199254740991}';
  expect(JSON.parse(keepDigits(text))).toEqual({
    a: "8273648273648123456",
    b: "-8273648273648123457",
    c: 12,
    d: '8273648273648123456 " 9999999999999999999',
    e: 0.1234567890123456,
    f: 9_007_199_254_740_991,
  });
});
