import { expect, test } from "vitest";
import type { Schemas } from "../api/client";
import { differsSaid, lastMoves, onTheirWay, readsEverything, serversOf, whyMoved } from "./cluster";

const bucket = (number: number, server: string | null, more: Partial<Schemas["BucketView"]> = {}) => ({
  bucket: number,
  server_id: server,
  tables: 2,
  epoch: 1,
  moved_at: 1000 * number,
  moved_by: "first",
  moves_to: null,
  ...more,
});
const share = (server_id: string, more: Partial<Schemas["ServerShare"]> = {}) => ({
  server_id,
  url: "https://10.0.0.1:7077",
  leads: false,
  session: 1,
  joined_at: 5,
  seen_at: 9,
  buckets: 1,
  tables: 2,
  coming: 0,
  cpu: null,
  differs: [],
  ...more,
});
const server = (server_id: string, more: Partial<Schemas["ServerView"]> = {}) => ({
  server_id,
  url: "https://10.0.0.1:7077",
  version: "0.1.0",
  leads: false,
  started_at: 3,
  seen_at: 7,
  is_silent: false,
  ...more,
});

test("a server is shown with its share of the tables and its release", () => {
  const cluster = {
    now: 10,
    version: 1,
    coordinator: null,
    servers: [share("a", { leads: true, cpu: 0.25 }), share("b", { tables: 6, seen_at: null, differs: ["catalogs"] })],
    buckets: [bucket(0, "a"), bucket(1, "b", { tables: 6 })],
  };
  const rows = serversOf(cluster, [server("b", { version: "0.2.0", is_silent: true }), server("c")]);
  expect(rows.map((row) => row.cpu)).toEqual([0.25, null, null]);
  expect(rows.map((row) => row.differs)).toEqual([[], ["catalogs"], []]);
  expect(rows.map((row) => [row.serverId, row.leads, row.share, row.release, row.seenAt, row.isSilent])).toEqual([
    ["a", true, 0.25, "unknown", 9, false],
    ["b", false, 0.75, "0.2.0", 7, true],
    ["c", false, 0, "0.1.0", 7, false],
  ]);
});

test("a difference in catalogs is said with what it means for their tables", () => {
  expect(differsSaid(["oidc", "policies"])).toBe("Its configuration differs from the leader's in oidc, policies.");
  expect(differsSaid(["catalogs"])).toBe(
    "Its configuration differs from the leader's in catalogs. icewright discovers no tables in a catalog that the " +
      "leader lacks: configure it there.",
  );
});

test("one server alone has no share", () => {
  const [row] = serversOf({ now: null, version: 0, coordinator: null, servers: [], buckets: [] }, [
    server("a", { leads: true }),
  ]);
  expect([row?.serverId, row?.leads, row?.share, row?.joinedAt]).toEqual(["a", true, null, null]);
});

test("what moves is summed by its two servers, and what moved by server and reason", () => {
  const buckets = [
    bucket(0, "a", { moves_to: "b" }),
    bucket(1, "a", { moves_to: "b", tables: 3 }),
    bucket(2, null, { moves_to: "b" }),
    bucket(3, "b", { moved_by: "died" }),
  ];
  expect(onTheirWay(buckets)).toEqual([
    { from: "a", to: "b", buckets: 2, tables: 5 },
    { from: null, to: "b", buckets: 1, tables: 2 },
  ]);
  expect(lastMoves(buckets)).toEqual([
    { to: "b", why: "its server was dead", buckets: 1, tables: 2, at: 3000 },
    { to: null, why: "first assignment", buckets: 1, tables: 2, at: 2000 },
    { to: "a", why: "first assignment", buckets: 2, tables: 5, at: 1000 },
  ]);
});

test("a reason that is not known yet is said as it comes", () => {
  expect(whyMoved("rebalanced")).toBe("rebalanced");
});

test("the cluster is shown to those who read all tables", () => {
  const everywhere = { catalog: "", namespace: [] };
  expect(readsEverything([{ role: "viewer", scope: everywhere }])).toBe(true);
  expect(readsEverything([{ role: "viewer", scope: { catalog: "lake", namespace: [] } }])).toBe(false);
  expect(readsEverything([{ role: "reporter", scope: everywhere }])).toBe(false);
});
