// The servers of one store and their buckets, summed for people.

import type { Schemas } from "../api/client";

export interface ServerRow {
  serverId: string;
  url: string;
  leads: boolean;
  isSilent: boolean;
  release: string;
  seenAt: number | null;
  joinedAt: number | null;
  buckets: number;
  coming: number;
  tables: number;
  /** Its CPU in the last minute, in cores; null where it is not known. */
  cpu: number | null;
  /** The sections of its configuration that differ from the leader's. */
  differs: string[];
  /** Its part of all tables; null where there is none. */
  share: number | null;
}

/** Roles of programs, which read nothing. */
const BLIND: ReadonlySet<string> = new Set(["reporter", "optimizer"]);

/** Whether a caller reads all tables, as the cluster asks for. */
export function readsEverything(grants: Schemas["Grant"][]): boolean {
  return grants.some(({ role, scope }) => !scope.catalog && !BLIND.has(role));
}

const WHY: Record<string, string> = {
  first: "first assignment",
  joined: "a server started",
  left: "its server ended",
  died: "its server was dead",
  silent: "its server was silent for too long",
};

export function whyMoved(by: string): string {
  return WHY[by] ?? by;
}

/** What is said of a server whose configuration differs from the leader's in these sections. */
export function differsSaid(sections: string[]): string {
  const said = `Its configuration differs from the leader's in ${sections.join(", ")}.`;
  // The leader alone lists catalogs.
  return sections.includes("catalogs")
    ? `${said} icewright discovers no tables in a catalog that the leader lacks: configure it there.`
    : said;
}

/** Each server with its share; those that have none, and one that is alone, are by the status. */
export function serversOf(cluster: Schemas["Cluster"], servers: Schemas["ServerView"][]): ServerRow[] {
  const known = new Map(servers.map((each) => [each.server_id, each]));
  const tables = cluster.buckets.reduce((sum, each) => sum + each.tables, 0);
  const shares = new Map(cluster.servers.map((each) => [each.server_id, each]));
  return [...new Set([...shares.keys(), ...known.keys()])].map((serverId) => {
    const share = shares.get(serverId);
    const server = known.get(serverId);
    return {
      serverId,
      url: share?.url || server?.url || "",
      leads: share?.leads ?? server?.leads ?? false,
      isSilent: server?.is_silent ?? false,
      release: server?.version ?? "unknown",
      seenAt: share?.seen_at ?? server?.seen_at ?? null,
      joinedAt: share?.joined_at ?? null,
      buckets: share?.buckets ?? 0,
      coming: share?.coming ?? 0,
      tables: share?.tables ?? 0,
      cpu: share?.cpu ?? null,
      differs: share?.differs ?? [],
      share: tables === 0 ? null : (share?.tables ?? 0) / tables,
    };
  });
}

type Bucket = Schemas["BucketView"];

function grouped<T>(buckets: Bucket[], keyOf: (bucket: Bucket) => string, rowOf: (all: Bucket[]) => T): T[] {
  const groups = new Map<string, Bucket[]>();
  for (const each of buckets) groups.set(keyOf(each), [...(groups.get(keyOf(each)) ?? []), each]);
  return [...groups.values()].map(rowOf);
}

const tablesOf = (buckets: Bucket[]): number => buckets.reduce((sum, each) => sum + each.tables, 0);

/** What is about to be handed over, by both servers. */
export function onTheirWay(buckets: Bucket[]) {
  return grouped(
    buckets.filter((each) => each.moves_to !== null),
    (each) => JSON.stringify([each.server_id, each.moves_to]),
    (all) => ({
      from: all[0]?.server_id ?? null,
      to: all[0]?.moves_to ?? "",
      buckets: all.length,
      tables: tablesOf(all),
    }),
  );
}

/** Why buckets are where they are, by server and reason, the latest first. */
export function lastMoves(buckets: Bucket[]) {
  return grouped(
    buckets,
    (each) => JSON.stringify([each.server_id, each.moved_by]),
    (all) => ({
      to: all[0]?.server_id ?? null,
      why: whyMoved(all[0]?.moved_by ?? ""),
      buckets: all.length,
      tables: tablesOf(all),
      at: Math.max(...all.map((each) => each.moved_at)),
    }),
  ).sort((one, other) => other.at - one.at);
}
