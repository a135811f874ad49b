// What addresses have behind the question mark: read with care, since anybody may have written them.

import type { TaskState } from "../api/queries";

type Raw = Record<string, unknown>;

export function text(raw: Raw, name: string): string | undefined {
  const value = raw[name];
  if (typeof value === "string" && value !== "") return value;
  return typeof value === "number" ? String(value) : undefined;
}

export function oneOf<T extends string>(raw: Raw, name: string, values: readonly T[]): T | undefined {
  const value = raw[name];
  return values.find((each) => each === value);
}

export function flag(raw: Raw, name: string): true | undefined {
  return raw[name] === true || raw[name] === "true" ? true : undefined;
}

export function texts(raw: Raw, name: string, most: number): string[] | undefined {
  const value = raw[name];
  const list = Array.isArray(value) ? value : value === undefined ? [] : [value];
  const found = list.filter((each): each is string => typeof each === "string" && each !== "").slice(0, most);
  return found.length > 0 ? found : undefined;
}

export const TASK_STATES = [
  "queued",
  "running",
  "in_doubt",
  "committed",
  "succeeded",
  "failed",
  "cancelled",
  "superseded",
] as const satisfies readonly TaskState[];

export const TABLE_SORTS = [
  "name",
  "-name",
  "health",
  "-health",
  "bytes",
  "-bytes",
  "files",
  "-files",
  "small_files",
  "-small_files",
  "delete_files",
  "-delete_files",
  "last_look",
  "-last_look",
  "last_task",
  "-last_task",
] as const;

export const MODES = ["observe", "approve", "auto"] as const;

export interface FleetSearch {
  sort?: (typeof TABLE_SORTS)[number] | undefined;
  search?: string | undefined;
  catalog?: string | undefined;
  namespace?: string | undefined;
  mode?: (typeof MODES)[number] | undefined;
  failing?: true | undefined;
  poor?: true | undefined;
}

export function fleetSearch(raw: Raw): FleetSearch {
  return {
    sort: oneOf(raw, "sort", TABLE_SORTS),
    search: text(raw, "search"),
    catalog: text(raw, "catalog"),
    namespace: text(raw, "namespace"),
    mode: oneOf(raw, "mode", MODES),
    failing: flag(raw, "failing"),
    poor: flag(raw, "poor"),
  };
}

export const TABLE_TABS = [
  "health",
  "layout",
  "queries",
  "files",
  "snapshots",
  "storage",
  "tasks",
  "policy",
  "why",
] as const;

export interface TableSearch {
  catalog?: string | undefined;
  tab?: (typeof TABLE_TABS)[number] | undefined;
  column?: string[] | undefined;
  sort?: string | undefined;
  small?: true | undefined;
  snapshot?: string | undefined;
}

export function tableSearch(raw: Raw): TableSearch {
  return {
    catalog: text(raw, "catalog"),
    tab: oneOf(raw, "tab", TABLE_TABS),
    column: texts(raw, "column", 2),
    sort: text(raw, "sort"),
    small: flag(raw, "small"),
    snapshot: text(raw, "snapshot"),
  };
}

export interface TasksSearch {
  state?: TaskState | undefined;
}

export function tasksSearch(raw: Raw): TasksSearch {
  return { state: oneOf(raw, "state", TASK_STATES) };
}

export const POLICY_TABS = ["rules", "revisions", "edit"] as const;

export function policySearch(raw: Raw): {
  tab?: (typeof POLICY_TABS)[number] | undefined;
  revision?: number | undefined;
} {
  const number = Number(raw.revision);
  return {
    tab: oneOf(raw, "tab", POLICY_TABS),
    revision: Number.isSafeInteger(number) && number > 0 ? number : undefined,
  };
}

export const ADMIN_TABS = [
  "system",
  "servers",
  "optimizers",
  "quarantine",
  "notifications",
  "audit",
  "people",
] as const;

export function adminSearch(raw: Raw): { tab?: (typeof ADMIN_TABS)[number] | undefined } {
  return { tab: oneOf(raw, "tab", ADMIN_TABS) };
}

export function referenceSearch(raw: Raw): { q?: string | undefined; schema?: string | undefined } {
  return { q: text(raw, "q"), schema: text(raw, "schema") };
}
