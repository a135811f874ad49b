// What is asked of the server, under which key it is kept, and how often it is asked anew.

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { serverTime } from "../lib/now";
import type { Document as OpenApi } from "../lib/reference";
import { answer, api, document, type Schemas, tagged } from "./client";
import type { paths } from "./schema.gen";

export type Table = Schemas["TableSummary"];
export type Task = Schemas["TaskView"];
export type TaskDocument = Schemas["TaskDocument"];
export type Plan = Schemas["PlanView"];
export type Status = Schemas["Status"];
export type Halt = Schemas["HaltView"];
export type TaskState = Schemas["TaskState"];

/** The feed tells of changes at once; these are for what it does not tell of, and for when it is away. */
const OFTEN = 2_000;
const NOW_AND_THEN = 10_000;
const SELDOM = 60_000;
const PAGE = 200;

export const me = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/me", { signal })),
  staleTime: SELDOM,
});

export const status = queryOptions({
  queryKey: ["status"],
  queryFn: async ({ signal }) => {
    const found = await answer(api.GET("/api/v1/status", { signal }));
    serverTime(found.now);
    return found;
  },
  refetchInterval: OFTEN,
});

type Asked<T> = { [K in keyof T]?: T[K] | undefined };
export type TableFilter = Asked<NonNullable<paths["/api/v1/tables"]["get"]["parameters"]["query"]>>;

export const tables = (filter: TableFilter) =>
  infiniteQueryOptions({
    queryKey: ["tables", "list", filter],
    queryFn: ({ pageParam, signal }) =>
      answer(api.GET("/api/v1/tables", { params: { query: { ...filter, limit: PAGE, cursor: pageParam } }, signal })),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
    // All pages would be asked for anew: whoever has scrolled far hears of changes by the feed alone.
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 3 ? false : NOW_AND_THEN),
  });

export const found = (search: string) =>
  queryOptions({
    queryKey: ["tables", "found", search],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tables", { params: { query: { search, limit: 10 } }, signal })),
    enabled: search.length > 0,
    staleTime: NOW_AND_THEN,
  });

/** More would be rectangles of a few pixels. */
const LARGEST = 500;
const NAMESPACES = 1_000;

export const largest = (filter: TableFilter) =>
  queryOptions({
    queryKey: ["tables", "largest", filter],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/tables", { params: { query: { ...filter, sort: "-bytes", limit: LARGEST } }, signal })),
    refetchInterval: NOW_AND_THEN,
  });

export const totals = (filter: TableFilter) =>
  queryOptions({
    queryKey: ["tables", "totals", filter],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tables/totals", { params: { query: filter }, signal })),
    refetchInterval: NOW_AND_THEN,
  });

export const namespaces = queryOptions({
  queryKey: ["tables", "namespaces"],
  queryFn: ({ signal }) =>
    answer(api.GET("/api/v1/namespaces", { params: { query: { sort: "-bytes", limit: NAMESPACES } }, signal })),
  refetchInterval: NOW_AND_THEN,
});

/** A table as the address has it. */
export interface TableRef {
  uuid: string;
  catalog?: string | undefined;
}

const of = <Q extends object>({ uuid, catalog }: TableRef, more: Q = {} as Q) => ({
  path: { uuid },
  query: { ...(catalog === undefined ? {} : { catalog }), ...more },
});
const ofTable = (ref: TableRef, part: string) => ["tables", "of", ref.uuid, ref.catalog ?? "", part];

export const table = (ref: TableRef) =>
  queryOptions({
    queryKey: ofTable(ref, "document"),
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tables/{uuid}", { params: of(ref), signal })),
    refetchInterval: NOW_AND_THEN,
  });

/** What is stored of the table: no catalog is asked for it. */
export const summary = (ref: TableRef) =>
  queryOptions({
    queryKey: ofTable(ref, "summary"),
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tables/{uuid}/summary", { params: of(ref), signal })),
    refetchInterval: NOW_AND_THEN,
  });

export const why = (ref: TableRef) =>
  queryOptions({
    queryKey: ofTable(ref, "why"),
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tables/{uuid}/why", { params: of(ref), signal })),
    refetchInterval: NOW_AND_THEN,
  });

export const policyTest = (ref: TableRef) =>
  queryOptions({
    queryKey: ofTable(ref, "policy-test"),
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tables/{uuid}/policy-test", { params: of(ref), signal })),
  });

const PARTITION_PAGES_MAX = 5;

export const partitions = (ref: TableRef) =>
  queryOptions({
    queryKey: ofTable(ref, "partitions"),
    queryFn: async ({ signal }) => {
      const items: Schemas["PartitionView"][] = [];
      let cursor: string | null = null;
      for (let page = 0; page < PARTITION_PAGES_MAX && (page === 0 || cursor !== null); page += 1) {
        const found: { items: Schemas["PartitionView"][]; next_cursor: string | null } = await answer(
          api.GET("/api/v1/tables/{uuid}/partitions", { params: of(ref, { limit: 1000, cursor }), signal }),
        );
        items.push(...found.items);
        cursor = found.next_cursor;
      }
      return { items, next_cursor: cursor };
    },
  });

export const snapshots = (ref: TableRef) =>
  queryOptions({
    queryKey: ofTable(ref, "snapshots"),
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/tables/{uuid}/snapshots", { params: of(ref, { limit: 1000 }), signal })),
  });

export const refs = (ref: TableRef) =>
  queryOptions({
    queryKey: ofTable(ref, "refs"),
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tables/{uuid}/refs", { params: of(ref), signal })),
  });

export const unneeded = (ref: TableRef) =>
  queryOptions({
    queryKey: ofTable(ref, "unneeded"),
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tables/{uuid}/unneeded", { params: of(ref), signal })),
  });

export const health = (ref: TableRef) =>
  queryOptions({
    queryKey: ofTable(ref, "health"),
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tables/{uuid}/health", { params: of(ref), signal })),
  });

export const storage = (ref: TableRef) =>
  queryOptions({
    queryKey: ofTable(ref, "storage"),
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tables/{uuid}/storage", { params: of(ref), signal })),
    staleTime: SELDOM, // all metadata is read for it
  });

export const tableQueries = (ref: TableRef) =>
  queryOptions({
    queryKey: ofTable(ref, "queries"),
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tables/{uuid}/queries", { params: of(ref), signal })),
    refetchInterval: NOW_AND_THEN,
  });

export const recommendationsOf = ({ uuid, catalog }: TableRef) =>
  queryOptions({
    queryKey: ["recommendations", "of", uuid, catalog ?? ""],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/recommendations", {
          params: { query: { table: uuid, limit: 10, ...(catalog === undefined ? {} : { catalog }) } },
          signal,
        }),
      ),
    refetchInterval: NOW_AND_THEN,
  });

export const openRecommendations = queryOptions({
  queryKey: ["recommendations", "open"],
  queryFn: ({ signal }) =>
    answer(api.GET("/api/v1/recommendations", { params: { query: { open: true, limit: 50 } }, signal })),
  refetchInterval: NOW_AND_THEN,
});

export const fleetBenefit = queryOptions({
  queryKey: ["benefit", "fleet"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/benefit", { params: { query: { weeks: 12 } }, signal })),
  staleTime: SELDOM,
});

export const recommendation = (id: string) =>
  queryOptions({
    queryKey: ["recommendations", "one", id],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/recommendations/{recommendation_id}", {
          params: { path: { recommendation_id: id } },
          signal,
        }),
      ),
  });

export const series = (ref: TableRef) =>
  queryOptions({
    queryKey: ofTable(ref, "series"),
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tables/{uuid}/series", { params: of(ref), signal })),
  });

export const metadata = (ref: TableRef) =>
  queryOptions({
    queryKey: ofTable(ref, "metadata"),
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tables/{uuid}/metadata", { params: of(ref), signal })),
  });

export const histogram = (ref: TableRef) =>
  queryOptions({
    queryKey: ofTable(ref, "histogram"),
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tables/{uuid}/histogram", { params: of(ref), signal })),
  });

export type FilesFilter = Asked<
  Pick<NonNullable<paths["/api/v1/tables/{uuid}/files"]["get"]["parameters"]["query"]>, "sort" | "small">
>;

export const files = (ref: TableRef, filter: FilesFilter) =>
  infiniteQueryOptions({
    queryKey: [...ofTable(ref, "files"), filter],
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET("/api/v1/tables/{uuid}/files", {
          params: of(ref, { ...filter, limit: PAGE, cursor: pageParam }),
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
  });

export const bounds = (ref: TableRef, columns: string[]) =>
  queryOptions({
    queryKey: [...ofTable(ref, "bounds"), columns],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/tables/{uuid}/bounds", { params: of(ref, { column: columns }), signal })),
    enabled: columns.length > 0,
  });

export interface TaskFilter {
  state?: TaskState[] | undefined;
  table?: string | undefined;
  catalog?: string | undefined;
}

export const tasks = (filter: TaskFilter) =>
  infiniteQueryOptions({
    queryKey: ["tasks", "list", filter],
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET("/api/v1/tasks", {
          params: { query: { ...filter, limit: 100, ...(pageParam === null ? {} : { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 3 ? false : OFTEN),
  });

export const task = (id: string) =>
  queryOptions({
    queryKey: ["tasks", "of", id],
    queryFn: ({ signal }) => tagged(api.GET("/api/v1/tasks/{task_id}", { params: { path: { task_id: id } }, signal })),
    refetchInterval: OFTEN,
  });

export const taskLog = (id: string, attempt: number, isRunning: boolean) =>
  queryOptions({
    queryKey: ["tasks", "log", id, attempt],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/tasks/{task_id}/logs", { params: { path: { task_id: id }, query: { attempt } }, signal }),
      ),
    refetchInterval: isRunning ? OFTEN : NOW_AND_THEN,
  });

export type AttemptFilter = Asked<
  Pick<NonNullable<paths["/api/v1/attempts"]["get"]["parameters"]["query"]>, "state" | "table" | "catalog">
>;

export const attempts = (filter: AttemptFilter) =>
  queryOptions({
    queryKey: ["tasks", "attempts", filter],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/attempts", { params: { query: { ...filter, limit: PAGE } }, signal })),
    refetchInterval: NOW_AND_THEN,
  });

export const waiting = infiniteQueryOptions({
  queryKey: ["plans", "waiting"],
  queryFn: ({ pageParam, signal }) =>
    answer(api.GET("/api/v1/plans/waiting", { params: { query: { limit: 100, cursor: pageParam } }, signal })),
  initialPageParam: null as string | null,
  getNextPageParam: (last) => last.next_cursor,
  refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 3 ? false : NOW_AND_THEN),
});

export const plansOf = (ref: TableRef) =>
  queryOptions({
    queryKey: ["plans", "table", ref.uuid, ref.catalog ?? ""],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/tables/{uuid}/plans", { params: of(ref, { limit: 20 }), signal })),
    refetchInterval: OFTEN,
  });

export const plan = (id: string) =>
  queryOptions({
    queryKey: ["plans", "of", id],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/plans/{plan_id}", { params: { path: { plan_id: id } }, signal })),
    refetchInterval: NOW_AND_THEN,
  });

export const groups = queryOptions({
  queryKey: ["groups"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/groups", { params: { query: { limit: 1000 } }, signal })),
  refetchInterval: OFTEN,
});

export const decisions = queryOptions({
  queryKey: ["autotune"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/autotune", { params: { query: { limit: 20 } }, signal })),
  refetchInterval: NOW_AND_THEN,
});

export const policies = queryOptions({
  queryKey: ["policies", "now"],
  queryFn: ({ signal }) => tagged(api.GET("/api/v1/policies", { signal })),
});

export const revisions = queryOptions({
  queryKey: ["policies", "revisions"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/policies/revisions", { params: { query: { limit: 100 } }, signal })),
});

export const revision = (number: number) =>
  queryOptions({
    queryKey: ["policies", "revision", number],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/policies/revisions/{number}", { params: { path: { number } }, signal })),
  });

export const feed = queryOptions({
  queryKey: ["feed"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/feed", { params: { query: { limit: 15 } }, signal })),
  refetchInterval: NOW_AND_THEN,
});

export const openapi = queryOptions({
  queryKey: ["openapi"],
  queryFn: ({ signal }) => document<OpenApi>("/api/v1/openapi.json", signal),
  staleTime: Number.POSITIVE_INFINITY, // a page that outlives its server's version is loaded anew
});

export const readiness = queryOptions({
  queryKey: ["readiness"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/readyz", { signal })),
  refetchInterval: NOW_AND_THEN,
});

export const cluster = queryOptions({
  queryKey: ["cluster"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/cluster", { signal })),
  refetchInterval: NOW_AND_THEN,
});

const LIST = { params: { query: { limit: 200 } } } as const;

export const audit = queryOptions({
  queryKey: ["audit"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/audit", { ...LIST, signal })),
});
export const tokens = queryOptions({
  queryKey: ["tokens"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/tokens", { ...LIST, signal })),
});
export const sessions = queryOptions({
  queryKey: ["sessions"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/sessions", { ...LIST, signal })),
});
export const quarantine = queryOptions({
  queryKey: ["quarantine"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/quarantine", { ...LIST, signal })),
});
export const receivers = queryOptions({
  queryKey: ["receivers"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/notifications", { signal })),
});
export const deadLetters = queryOptions({
  queryKey: ["dead-letters"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/notifications/dead-letters", { ...LIST, signal })),
});
