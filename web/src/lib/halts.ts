// What people have halted, and what needs somebody. Pure.

import type { Halt, Status } from "../api/queries";
import { count, duration } from "./format";

/** A halt that lets less go on has a greater one. */
const RANK: Record<Halt["state"], number> = { paused: 0, draining: 1, stopped: 2 };

export function haltPart(halt: Pick<Halt, "kind" | "name">): string {
  return halt.kind === "all" ? "everything" : `${halt.kind} ${halt.name}`;
}

export function haltWords(halt: Pick<Halt, "kind" | "name" | "state" | "by" | "why">): string {
  return `${haltPart(halt)} is ${halt.state} by ${halt.by}${halt.why ? `: ${halt.why}` : ""}`;
}

export interface Halted {
  catalog: string;
  uuid: string;
  resource_group?: string;
}

/** Of the halts that a table or a task is in, the one that lets least go on. */
export function haltOver(halts: Halt[], what: Halted): Halt | undefined {
  const covers = (halt: Halt) => {
    if (halt.kind === "table") return halt.catalog === what.catalog && halt.uuid === what.uuid;
    return halt.kind === "all" || halt.name === (halt.kind === "group" ? what.resource_group : what.catalog);
  };
  return halts.filter(covers).sort((one, other) => RANK[other.state] - RANK[one.state])[0];
}

export interface TroubleLine {
  kind: string;
  name: string;
  text: string;
  until?: number;
}

/** In the words of `icewright status`. */
export function troubles(status: Status): TroubleLine[] {
  return [
    ...status.catalogs.flatMap(({ name, paused_until: until }) =>
      until === null ? [] : [{ kind: "catalog", name, text: "it does not answer, and is left alone until", until }],
    ),
    ...status.doing
      .filter((each) => each.is_silent)
      .map(({ thread, heard_at: until }) => ({
        kind: "thread",
        name: thread,
        text: "it hangs: see the server's log, and restart it. No sign of life since",
        until,
      })),
    ...status.servers
      .filter((each) => each.is_silent)
      .map(({ server_id: name, seen_at: until }) => ({
        kind: "server",
        name,
        text: "it has died, or the store does not answer it. It is silent since",
        until,
      })),
    ...(status.history?.is_late
      ? [{ kind: "history", name: "history of tasks", text: `it is ${duration(status.history.lag_ms ?? 0)} behind` }]
      : []),
    ...status.receivers
      .filter((each) => each.trouble)
      .map(({ name, trouble: text }) => ({ kind: "receiver", name, text })),
    ...status.unreadable.map(({ name, reason }) => ({ kind: "unreadable", name, text: reason.text })),
    ...(status.unreadable_count > status.unreadable.length
      ? [
          {
            kind: "unreadable",
            name: `${count(status.unreadable_count - status.unreadable.length)} more tables`,
            text: "the server cannot read them either",
          },
        ]
      : []),
  ];
}
