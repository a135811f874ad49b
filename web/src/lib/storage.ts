// Who needs the bytes of a table. Pure.

import type { Amount, Storage } from "../api/client";

function sum(amounts: Amount[]): number {
  return amounts.reduce((total, amount) => total + amount.size_bytes, 0);
}

/** Each file is counted once: for the first of these that needs it. */
export function storageParts({ classes }: Pick<Storage, "classes">): { name: string; bytes: number }[] {
  return [
    { name: "the current snapshot", bytes: sum(classes.map((one) => one.live)) },
    { name: "branches and tags", bytes: sum(classes.map((one) => one.by_refs)) },
    { name: "older snapshots", bytes: sum(classes.map((one) => one.by_history)) },
  ];
}
