// One table: how well it is and why, what its files are like, what was done, who decides.

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import type { DataFile } from "../api/client";
import { answer, api, type Schemas } from "../api/client";
import * as queries from "../api/queries";
import { type Column, DataTable } from "../components/data-table";
import { PlanLink, Tabs, TaskLink } from "../components/links";
import {
  OverlapPicture,
  PartitionsPicture,
  RectanglesPicture,
  SeriesPicture,
  SizesPicture,
  SnapshotsPicture,
  StoragePicture,
} from "../components/pictures";
import { RollBack } from "../components/rollback";
import { TableQueries } from "../components/table-queries";
import {
  Badge,
  Button,
  Card,
  Code,
  Empty,
  Facts,
  Field,
  Figures,
  HealthBadge,
  Loaded,
  Name,
  PageHeading,
  Select,
  Time,
  Trouble,
  useTrouble,
  Waiting,
} from "../components/ui";
import { bytes, count, duration, plural, visible, words } from "../lib/format";
import { haltOver, haltWords } from "../lib/halts";
import { useNow } from "../lib/now";
import { MEASURES, type Measure, timeline, waterfall, writerOf } from "../lib/pictures";
import { TABLE_TABS, type TableSearch } from "../lib/search";
import { storageParts } from "../lib/storage";
import { useTitle } from "../lib/title";
import { PolicyOfTable } from "./policies";
import { TASK_COLUMNS } from "./tasks";

const tableRoute = getRouteApi("/tables/$uuid");

type Tab = (typeof TABLE_TABS)[number];
/** What the catalog says of the table now. */
type Now = Schemas["TableDocument"]["table"];
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

const NAMES: Record<Tab, string> = {
  health: "Health",
  layout: "Layout",
  queries: "Queries",
  files: "Files",
  snapshots: "Snapshots",
  storage: "Storage",
  tasks: "Tasks",
  policy: "Policy",
  why: "Why",
};

export function TablePage() {
  const { uuid } = tableRoute.useParams();
  const search = tableRoute.useSearch();
  const ref = { uuid, catalog: search.catalog };
  const stored = useQuery(queries.summary(ref));
  useTitle(stored.data?.name ?? "Table");
  return (
    <Loaded query={stored} what="the table">
      {(summary) => <TableView key={uuid} summary={summary} search={search} table={ref} />}
    </Loaded>
  );
}

/** A table as it is stored; with what its catalog says, as soon as that answers. */
function TableView({
  summary,
  search,
  table: ref,
}: {
  summary: queries.Table;
  search: TableSearch;
  table: queries.TableRef;
}) {
  const found = useQuery(queries.table(ref));
  const trouble = useTrouble(found);
  const status = useQuery(queries.status);
  const health = useQuery(queries.health(ref));
  const now = found.data?.table;
  const halt = haltOver(status.data?.halts ?? [], summary);
  const tab = search.tab ?? "health";
  const figures = now?.figures ?? summary.figures;
  const mode = now?.mode ?? summary.mode;
  const interval = now ? now.commit_interval_ms : summary.commit_interval_ms;
  return (
    <>
      <PageHeading
        title={
          <span className="flex flex-wrap items-center gap-3">
            <Name>{summary.name}</Name>
            {health.data ? <HealthBadge health={health.data.health} /> : null}
            {mode ? <Badge>{mode}</Badge> : null}
          </span>
        }
      >
        <Look table={ref} />
      </PageHeading>
      {trouble ? (
        <div className="mb-3">
          <Trouble error={trouble} again={() => void found.refetch()} />
          <p className="mt-1 text-sm text-soft">
            What is stored is shown, as of the last look (<Time at={summary.observed_at} relative />
            ).
          </p>
        </div>
      ) : null}
      {halt ? (
        <p className="mb-3 text-bad">
          <Name>{haltWords(halt)}</Name>
        </p>
      ) : null}
      {summary.problem ? (
        <p className="mb-3 text-bad">
          <Name>{summary.problem.text}</Name>
        </p>
      ) : null}
      <div className="mb-4">
        <Figures
          items={[
            { name: "Size", value: figures ? bytes(figures.size_bytes) : "–" },
            { name: "Rows", value: figures ? count(figures.records) : "–" },
            {
              name: "Data files",
              value: figures ? count(figures.data_files) : "–",
              note: figures ? `${count(figures.small_files)} small` : undefined,
            },
            { name: "Delete files", value: figures ? count(figures.delete_files) : "–" },
            { name: "Snapshots", value: now ? count(now.snapshots) : "–" },
            { name: "Commits", value: interval === null ? "–" : `every ${duration(interval)}` },
          ]}
        />
      </div>
      <Tabs
        label="Parts of the table"
        tabs={TABLE_TABS}
        current={tab}
        nameOf={(each) => NAMES[each]}
        linkOf={(each, className, isCurrent) => (
          <Link
            to="/tables/$uuid"
            params={{ uuid: ref.uuid }}
            search={{ catalog: search.catalog, tab: each }}
            className={className}
            aria-current={isCurrent ? "page" : undefined}
            resetScroll={false}
          >
            {NAMES[each]}
          </Link>
        )}
      />
      {tab === "health" ? <Health table={ref} summary={summary} now={now} isAway={trouble !== null} /> : null}
      {tab === "layout" ? (
        <Layout table={ref} now={now} isAway={trouble !== null} columns={search.column ?? []} />
      ) : null}
      {tab === "queries" ? <TableQueries table={ref} /> : null}
      {tab === "files" ? <Files table={ref} search={search} /> : null}
      {tab === "snapshots" ? <Snapshots table={ref} search={search} of={summary} /> : null}
      {tab === "storage" ? <StorageTab table={ref} /> : null}
      {tab === "tasks" ? <Tasks table={summary} /> : null}
      {tab === "policy" ? <Policy table={ref} /> : null}
      {tab === "why" ? <Why table={ref} /> : null}
    </>
  );
}

/** Have the table looked at now, instead of at its next turn. */
function Look({ table: ref }: { table: queries.TableRef }) {
  const client = useQueryClient();
  const me = useQuery(queries.me);
  const look = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/tables/{uuid}/look", {
          params: { path: { uuid: ref.uuid }, query: ref.catalog === undefined ? {} : { catalog: ref.catalog } },
        }),
      ),
    onSettled: () => {
      for (const key of ["tables", "plans", "tasks"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
  if (!me.data?.permissions.includes("operate")) return null;
  return (
    <div className="flex flex-wrap items-center gap-2">
      <Button disabled={look.isPending} onClick={() => look.mutate()}>
        {look.isPending ? "Looking…" : "Look at it now"}
      </Button>
      {look.data ? (
        <span role="status" className="text-sm">
          {look.data.task_id ? (
            <TaskLink id={look.data.task_id} />
          ) : (
            <PlanLink id={look.data.plan.plan_id}>its plan</PlanLink>
          )}
        </span>
      ) : null}
      {look.error ? <Trouble error={look.error} /> : null}
    </div>
  );
}

// Health --------------------------------------------------------------------------------------------------------------

function Health({
  table: ref,
  summary,
  now,
  isAway,
}: {
  table: queries.TableRef;
  summary: queries.Table;
  now: Now | undefined;
  isAway: boolean;
}) {
  const health = useQuery(queries.health(ref));
  const series = useQuery(queries.series(ref));
  const plan = summary.plan;
  const stored: [string, ReactNode][] = [
    ["Optimized", <Time key="optimized" at={summary.optimized_at} relative />],
    ["Looked at", <Time key="looked" at={summary.observed_at} relative />],
    ["Next look", <Time key="next" at={summary.next_look_at} relative />],
    ["UUID", <code key="uuid">{summary.uuid}</code>],
  ];
  return (
    <div className="flex flex-col gap-4">
      <Loaded query={health} what="its health">
        {({ health: found, change }) => (
          <Card title={found ? `Health ${found.score} of 100: ${found.grade}` : "Health is not known yet"}>
            {found ? (
              <table className="w-full text-sm">
                <caption className="sr-only">Parts of the health</caption>
                <thead>
                  <tr className="text-left text-soft">
                    <th scope="col" className="pr-3 font-medium">
                      Part
                    </th>
                    <th scope="col" className="pr-3 text-right font-medium">
                      Score
                    </th>
                    <th scope="col" className="pr-3 text-right font-medium max-sm:hidden">
                      Weight
                    </th>
                    <th scope="col" className="font-medium">
                      Why, and what would raise it
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {found.parts.map((part) => (
                    <tr key={part.part} className="border-t border-line align-top">
                      <th scope="row" className="py-1 pr-3 text-left font-medium first-letter:uppercase">
                        {part.part}
                      </th>
                      <td className="py-1 pr-3 text-right tabular-nums">{part.score}</td>
                      <td className="py-1 pr-3 text-right tabular-nums max-sm:hidden">{part.weight}</td>
                      <td className="py-1">
                        <Name>{part.reason.text}</Name>
                        {part.action ? (
                          <span className="block font-medium">
                            <Name>{part.action.text}</Name>
                          </span>
                        ) : null}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            ) : (
              <p className="text-soft">It is computed with the first look that comes to a plan.</p>
            )}
            {change ? (
              <p className="mt-2 text-sm">
                <Time at={change.at} relative />: <Name>{change.text}</Name>
              </p>
            ) : null}
          </Card>
        )}
      </Loaded>
      {plan ? (
        <Card title="What is to be done">
          <p>
            <Name>{plan.reason.text}</Name>
          </p>
          <PlanLink id={plan.plan_id}>{plan.can_apply ? "Look at the plan and decide" : "Look at the plan"}</PlanLink>
        </Card>
      ) : null}
      {series.data && series.data.items.length > 1 ? <SeriesPicture samples={series.data.items} /> : null}
      <Card title="About this table">
        {now || isAway ? (
          <Facts
            items={
              now
                ? [
                    ["Location", <Code key="location">{now.location}</Code>],
                    ["Metadata", <Code key="metadata">{now.metadata_location}</Code>],
                    ["Format version", now.format_version],
                    ["Partitioned by", <Name key="spec">{now.partition_spec || "nothing"}</Name>],
                    ["Sort order", <Name key="order">{now.sort_order || "none"}</Name>],
                    ["Written", <Time key="written" at={now.written_at} relative />],
                    ...stored,
                  ]
                : [["Format version", summary.format_version], ...stored]
            }
          />
        ) : (
          <Waiting what="its metadata" />
        )}
      </Card>
    </div>
  );
}

// Layout --------------------------------------------------------------------------------------------------------------

function Layout({
  table: ref,
  now: found,
  isAway,
  columns,
}: {
  table: queries.TableRef;
  now: Now | undefined;
  isAway: boolean;
  columns: string[];
}) {
  const navigate = tableRoute.useNavigate();
  const histogram = useQuery(queries.histogram(ref));
  const partitions = useQuery(queries.partitions(ref));
  const offered = (found?.columns ?? []).map((column) => column.name);
  const chosen = columns.length > 0 ? columns : [];
  const [what, setWhat] = useState<Measure>("files");
  const hour = Math.floor(useNow() / HOUR_MS) * HOUR_MS;
  const choose = (index: number, name: string) => {
    const next = [...chosen];
    if (name) next[index] = name;
    else next.splice(index);
    void navigate({
      search: (before) => ({ ...before, column: next.length > 0 ? next : undefined }),
      replace: true,
      resetScroll: false,
    });
  };
  return (
    <div className="flex flex-col gap-4">
      {found?.layout ? (
        <Card title="Wanted layout">
          <p>
            <Name className="font-medium">{found.layout.text}</Name>{" "}
            <span className="text-soft">
              (<Name>{found.layout.origin}</Name>)
            </span>
          </p>
          {found.layout.reason ? (
            <p>
              <Name>{found.layout.reason.text}</Name>
            </p>
          ) : null}
        </Card>
      ) : null}
      <Loaded query={histogram} what="file sizes">
        {(found) => (found.buckets.length > 0 ? <SizesPicture histogram={found} /> : <Empty>No data files.</Empty>)}
      </Loaded>
      <div className="flex flex-wrap items-end gap-3">
        <h2 className="text-base font-semibold">What a lookup opens</h2>
        <Field label="By column">
          {(id) => (
            <Select id={id} value={chosen[0] ?? ""} onChange={(event) => choose(0, event.target.value)}>
              <option value="">choose one</option>
              {offered.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </Select>
          )}
        </Field>
        {chosen[0] ? (
          <Field label="And by">
            {(id) => (
              <Select id={id} value={chosen[1] ?? ""} onChange={(event) => choose(1, event.target.value)}>
                <option value="">no other</option>
                {offered
                  .filter((name) => name !== chosen[0])
                  .map((name) => (
                    <option key={name}>{name}</option>
                  ))}
              </Select>
            )}
          </Field>
        ) : null}
      </div>
      {chosen.length > 0 ? <Overlaps table={ref} columns={chosen} /> : null}
      <Loaded query={partitions} what="partitions">
        {({ items, next_cursor: more }) =>
          items.length === 0 ? (
            <Empty>No data files.</Empty>
          ) : (
            <PartitionsPicture
              partitions={items}
              what={what}
              now={hour}
              more={more !== null}
              actions={
                <Select aria-label="By what" value={what} onChange={(event) => setWhat(event.target.value as Measure)}>
                  {MEASURES.map((each) => (
                    <option key={each}>{each}</option>
                  ))}
                </Select>
              }
            />
          )
        }
      </Loaded>
      {found ? <Schema columns={found.columns} /> : isAway ? null : <Waiting what="its columns" />}
      <Properties table={ref} />
    </div>
  );
}

function Overlaps({ table: ref, columns }: { table: queries.TableRef; columns: string[] }) {
  return (
    <>
      {columns.map((column) => (
        <OverlapOfColumns key={column} table={ref} columns={[column]} />
      ))}
      {columns.length === 2 ? <OverlapOfColumns table={ref} columns={columns} /> : null}
    </>
  );
}

function OverlapOfColumns({ table: ref, columns }: { table: queries.TableRef; columns: string[] }) {
  const bounds = useQuery(queries.bounds(ref, columns));
  return (
    <Loaded query={bounds} what="the bounds of its files">
      {(found) => (columns.length === 1 ? <OverlapPicture bounds={found} /> : <RectanglesPicture bounds={found} />)}
    </Loaded>
  );
}

function Schema({ columns: rows }: { columns: Now["columns"] }) {
  const columns: Column<Schemas["ColumnView"]>[] = [
    {
      id: "name",
      heading: "Column",
      by: (row) => row.name,
      cell: (row) => <Name className="font-medium">{row.name}</Name>,
    },
    { id: "type", heading: "Type", by: (row) => row.type, cell: (row) => <Code>{row.type}</Code> },
    {
      id: "required",
      heading: "Required",
      from: "sm",
      by: (row) => String(row.required),
      cell: (row) => (row.required ? "yes" : ""),
    },
    { id: "doc", heading: "Description", from: "md", cell: (row) => <Name>{row.doc ?? ""}</Name> },
  ];
  return (
    <section aria-label="Schema">
      <h2 className="mb-2 text-base font-semibold">Schema</h2>
      <DataTable label="Columns" rows={rows} columns={columns} keyOf={(row) => String(row.field_id)} />
    </section>
  );
}

function Properties({ table: ref }: { table: queries.TableRef }) {
  const metadata = useQuery(queries.metadata(ref));
  return (
    <Loaded query={metadata} what="its properties">
      {({ properties, partition_specs: specs }) => (
        <>
          {specs.length > 1 ? (
            <Card title="Partition specs">
              <Facts
                items={specs.map((spec) => [
                  `${spec.spec_id}${spec.is_default ? ", the present one" : ""}`,
                  spec.text || "unpartitioned",
                ])}
              />
            </Card>
          ) : null}
          <Card title="Properties">
            {Object.keys(properties).length === 0 ? <p className="text-soft">None.</p> : null}
            <Facts
              verbatim
              items={Object.entries(properties).map(([key, value]) => [
                visible(key),
                <Name key={key}>{String(value)}</Name>,
              ])}
            />
          </Card>
        </>
      )}
    </Loaded>
  );
}

// Files ---------------------------------------------------------------------------------------------------------------

const FILE_SORTS = ["-size", "size", "partition", "-records", "records"] as const;
const FILE_SORTABLE = ["size", "partition", "records"] as const;

const FILES: Column<DataFile>[] = [
  {
    id: "path",
    heading: "File",
    cell: (row) => (
      <span title={row.path}>
        <Name>{row.path.slice(row.path.lastIndexOf("/") + 1)}</Name>
      </span>
    ),
  },
  { id: "partition", heading: "Partition", from: "sm", cell: (row) => <Name>{row.partition}</Name> },
  {
    id: "size",
    heading: "Size",
    numeric: true,
    cell: (row) => (
      <>
        {bytes(row.size_bytes)} {row.is_small ? <Badge tone="fair">small</Badge> : null}
      </>
    ),
  },
  { id: "records", heading: "Rows", numeric: true, cell: (row) => count(row.records) },
  { id: "format", heading: "Format", from: "lg", cell: (row) => row.format },
  { id: "sequence", heading: "Sequence", numeric: true, from: "lg", cell: (row) => row.data_sequence_number },
];

function Files({ table: ref, search }: { table: queries.TableRef; search: TableSearch }) {
  const navigate = tableRoute.useNavigate();
  const sort = FILE_SORTS.find((each) => each === search.sort) ?? "-size";
  const list = useInfiniteQuery(queries.files(ref, { sort, small: search.small }));
  const first = list.data?.pages[0];
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? [], [list.data]);
  const change = (next: Partial<TableSearch>) =>
    void navigate({ search: (before) => ({ ...before, ...next }), replace: true, resetScroll: false });
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center gap-3">
        <Button
          aria-pressed={search.small === true}
          look={search.small ? "main" : "plain"}
          onClick={() => change({ small: search.small ? undefined : true })}
        >
          Small files alone
        </Button>
        {first ? (
          <p className="text-sm text-soft">
            {plural(first.files_total, "file")} of snapshot {first.snapshot_id ?? "none"}.
            {first.truncated ? ` Only ${count(first.files_read)} were read: the order is that of these.` : ""}
          </p>
        ) : null}
      </div>
      <Loaded query={list} what="files">
        {() =>
          rows.length === 0 ? (
            <Empty>{search.small ? "No file is small." : "No data files."}</Empty>
          ) : (
            <DataTable
              label="Data files"
              rows={rows}
              columns={FILES}
              keyOf={(row) => row.path}
              sort={sort}
              onSort={(next) =>
                change({
                  sort: FILE_SORTS.find((each) => each === next) ?? (next === "-partition" ? "partition" : undefined),
                })
              }
              byServer
              sortable={FILE_SORTABLE}
              more={
                list.hasNextPage
                  ? { load: () => void list.fetchNextPage(), isLoading: list.isFetchingNextPage }
                  : undefined
              }
            />
          )
        }
      </Loaded>
    </div>
  );
}

// Snapshots -----------------------------------------------------------------------------------------------------------

type Snapshot = Schemas["SnapshotView"];

const SNAPSHOTS: Column<Snapshot>[] = [
  {
    id: "id",
    heading: "Snapshot",
    cell: (row) => (
      <span className="flex flex-wrap items-center gap-2">
        {row.is_current ? <Badge tone="good">current</Badge> : null}
        {row.is_ancestor ? null : <Badge tone="fair">not in the history</Badge>}
        {row.refs.map((name) => (
          <Badge key={name} tone="busy">
            <Name>{name}</Name>
          </Badge>
        ))}
      </span>
    ),
  },
  { id: "at", heading: "Committed", by: (row) => row.committed_at, cell: (row) => <Time at={row.committed_at} /> },
  { id: "operation", heading: "Operation", from: "sm", by: (row) => row.operation, cell: (row) => row.operation ?? "" },
  {
    id: "by",
    heading: "By",
    by: (row) => row.task_id ?? "",
    cell: (row) => (row.task_id ? <TaskLink id={row.task_id} /> : <Name>{writerOf(row)}</Name>),
  },
  {
    id: "added",
    heading: "Files added",
    numeric: true,
    from: "md",
    by: (row) => Number(row.summary["added-data-files"] ?? 0),
    cell: (row) => count(Number(row.summary["added-data-files"] ?? 0)),
  },
  {
    id: "removed",
    heading: "Removed",
    numeric: true,
    from: "md",
    by: (row) => Number(row.summary["deleted-data-files"] ?? 0),
    cell: (row) => count(Number(row.summary["deleted-data-files"] ?? 0)),
  },
];

/** The columns, with ids that show the snapshot. */
function snapshotColumns(onPick: (id: string) => void): Column<Snapshot>[] {
  return SNAPSHOTS.map((column) =>
    column.id === "id"
      ? {
          ...column,
          cell: (row) => (
            <span className="flex flex-wrap items-center gap-2">
              <button
                type="button"
                className="min-h-6 text-accent hover:underline"
                onClick={() => onPick(row.snapshot_id)}
              >
                <code>{row.snapshot_id}</code>
              </button>
              {column.cell(row)}
            </span>
          ),
        }
      : column,
  );
}

function SnapshotCard({
  snapshot,
  table,
  onClose,
}: {
  snapshot: Snapshot;
  table: { name: string; catalog: string; uuid: string };
  onClose: () => void;
}) {
  return (
    <Card
      title={`Snapshot ${snapshot.snapshot_id}`}
      actions={
        <>
          {snapshot.is_ancestor && !snapshot.is_current ? <RollBack table={table} to={snapshot.snapshot_id} /> : null}
          <Button onClick={onClose}>Close</Button>
        </>
      }
    >
      <div className="flex flex-col gap-3">
        <Facts
          items={[
            ["Committed", <Time key="at" at={snapshot.committed_at} />],
            ["Operation", snapshot.operation ?? "not said"],
            [
              "By",
              snapshot.task_id ? (
                <TaskLink key="by" id={snapshot.task_id} />
              ) : (
                <Name key="by">{writerOf(snapshot)}</Name>
              ),
            ],
            ["In the current history", snapshot.is_ancestor ? "yes" : "no"],
            ["Branches and tags", <Name key="refs">{snapshot.refs.join(", ") || "none"}</Name>],
            ["Before it", snapshot.parent_id === null ? "nothing" : <code key="parent">{snapshot.parent_id}</code>],
          ]}
        />
        <h3 className="text-sm font-semibold">What its commit says</h3>
        <Facts
          verbatim
          items={Object.entries(snapshot.summary).map(([key, value]) => [visible(key), <Name key={key}>{value}</Name>])}
        />
      </div>
    </Card>
  );
}

function Snapshots({
  table: ref,
  search,
  of,
}: {
  table: queries.TableRef;
  search: TableSearch;
  of: { name: string; catalog: string; uuid: string };
}) {
  const navigate = tableRoute.useNavigate();
  const list = useQuery(queries.snapshots(ref));
  const refs = useQuery(queries.refs(ref));
  const conflicts = useQuery(queries.attempts({ table: of.uuid, catalog: ref.catalog, state: ["conflict"] }));
  const [items, named, refused] = [list.data?.items, refs.data?.items, conflicts.data?.items];
  const found = useMemo(() => timeline(items ?? [], named ?? [], refused ?? []), [items, named, refused]);
  const show = (snapshot: string | undefined) =>
    void navigate({ search: (before) => ({ ...before, snapshot }), replace: true, resetScroll: false });
  const shown = items?.find((each) => each.snapshot_id === search.snapshot);
  return (
    <div className="flex flex-col gap-4">
      <Loaded query={list} what="snapshots">
        {({ items: rows, next_cursor: more }) =>
          rows.length === 0 ? (
            <Empty>No snapshots: nothing was written yet.</Empty>
          ) : (
            <>
              <SnapshotsPicture
                found={found}
                more={more !== null}
                onPick={(picked) =>
                  "task" in picked
                    ? void navigate({ to: "/tasks/$taskId", params: { taskId: picked.task } })
                    : show(picked.snapshot)
                }
              />
              <div aria-live="polite">
                {shown ? <SnapshotCard snapshot={shown} table={of} onClose={() => show(undefined)} /> : null}
              </div>
              <DataTable
                label="Snapshots"
                rows={rows}
                columns={snapshotColumns(show)}
                keyOf={(row) => row.snapshot_id}
              />
            </>
          )
        }
      </Loaded>
      {refs.data && refs.data.items.length > 0 ? (
        <Card title="Branches and tags">
          <ul className="flex flex-col gap-1 text-sm">
            {refs.data.items.map((one) => (
              <li key={one.name} className="flex flex-wrap items-center gap-2">
                <Badge>{one.type}</Badge>
                <Name className="font-medium">{one.name}</Name>
                <code>{String(one.snapshot_id)}</code>
                <span className="text-soft">
                  <Time at={one.committed_at} />
                </span>
              </li>
            ))}
          </ul>
        </Card>
      ) : null}
    </div>
  );
}

// Storage -------------------------------------------------------------------------------------------------------------

function StorageTab({ table: ref }: { table: queries.TableRef }) {
  const storage = useQuery(queries.storage(ref));
  const unneeded = useQuery(queries.unneeded(ref));
  return (
    <div className="flex flex-col gap-4">
      <Loaded query={storage} what="all of its metadata: this may take a while">
        {(found) => {
          const steps = waterfall(storageParts(found));
          return (
            <>
              {found.complete ? null : (
                <p className="text-bad">
                  {plural(found.gaps_count, "file")} could not be read: all sizes are lower bounds.
                </p>
              )}
              <StoragePicture steps={steps} />
              <Card title="What expiring snapshots would free">
                <table className="text-sm">
                  <caption className="sr-only">What expiring snapshots would free</caption>
                  <thead>
                    <tr className="text-left text-soft">
                      <th scope="col" className="pr-4 font-medium">
                        Expire
                      </th>
                      <th scope="col" className="pr-4 text-right font-medium">
                        Snapshots
                      </th>
                      <th scope="col" className="pr-4 text-right font-medium">
                        Files
                      </th>
                      <th scope="col" className="text-right font-medium">
                        Freed
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {found.expiries.map((one) => {
                      const name =
                        one.rule.retain_last === null
                          ? `older than ${plural(one.rule.older_than_ms / DAY_MS, "day")}`
                          : `all but the last ${one.rule.retain_last}`;
                      return (
                        <tr key={name}>
                          <th scope="row" className="pr-4 text-left font-normal">
                            {name}
                          </th>
                          <td className="pr-4 text-right tabular-nums">{count(one.snapshots)}</td>
                          <td className="pr-4 text-right tabular-nums">{count(one.freed.files)}</td>
                          <td className="text-right tabular-nums">{bytes(one.freed.size_bytes)}</td>
                        </tr>
                      );
                    })}
                  </tbody>
                </table>
              </Card>
            </>
          );
        }}
      </Loaded>
      <Loaded query={unneeded} what="files that nothing needs">
        {({ orphans, quarantine }) => (
          <Card title="Files that the table does not need">
            <ul className="list-disc pl-5 text-sm">
              {orphans === null ? (
                <li>Its folders were not listed yet.</li>
              ) : (
                <li>
                  Without anything that needs them: {plural(orphans.files, "file")} ({bytes(orphans.size_bytes)})
                  {orphans.seen ? `, ${count(orphans.seen.removable.files)} of them for long enough to be removed` : ""}
                  {orphans.listing_is_complete ? "" : "; the listing is not complete"}.
                </li>
              )}
              <li>
                In quarantine: {plural(quarantine.files, "file")} ({bytes(quarantine.size_bytes)}).
              </li>
            </ul>
          </Card>
        )}
      </Loaded>
    </div>
  );
}

// Tasks, policy, why --------------------------------------------------------------------------------------------------

const OWN_TASKS = TASK_COLUMNS.filter((column) => column.id !== "table").map((column) =>
  column.id === "why" || column.id === "kind" ? { ...column, from: undefined } : column,
);

function Tasks({ table }: { table: queries.Table }) {
  const list = useInfiniteQuery(queries.tasks({ table: table.uuid, catalog: table.catalog }));
  return (
    <Loaded query={list} what="its tasks">
      {({ pages }) => {
        const rows = pages.flatMap((page) => page.items);
        return rows.length === 0 ? (
          <Empty>Nothing was done to this table yet.</Empty>
        ) : (
          <DataTable
            label="Tasks of this table"
            rows={rows}
            columns={OWN_TASKS}
            keyOf={(row) => row.task_id}
            more={
              list.hasNextPage
                ? { load: () => void list.fetchNextPage(), isLoading: list.isFetchingNextPage }
                : undefined
            }
          />
        );
      }}
    </Loaded>
  );
}

function Policy({ table: ref }: { table: queries.TableRef }) {
  const test = useQuery(queries.policyTest(ref));
  return (
    <Loaded query={test} what="its settings">
      {(found) => <PolicyOfTable test={found} />}
    </Loaded>
  );
}

function Why({ table: ref }: { table: queries.TableRef }) {
  const why = useQuery(queries.why(ref));
  return (
    <Loaded query={why} what="the reasons">
      {(found) => (
        <div className="flex flex-col gap-4">
          <Card title="Why something happens to it, or nothing">
            <p className="font-medium">
              <Name>{found.answer}</Name>
            </p>
            {found.says.map((line) => (
              <p key={line} className="text-sm">
                <Name>{line}</Name>
              </p>
            ))}
          </Card>
          <ul className="grid gap-3 lg:grid-cols-2">
            {found.kinds.map((kind) => (
              <li key={kind.kind}>
                <Card
                  title={<span className="first-letter:uppercase inline-block">{words(kind.kind)}</span>}
                  actions={<Badge tone={kind.stance === "under-way" ? "busy" : "plain"}>{words(kind.stance)}</Badge>}
                >
                  {kind.says.map((line) => (
                    <p key={line} className="text-sm">
                      <Name>{line}</Name>
                    </p>
                  ))}
                  <p className="flex gap-3 text-sm">
                    {kind.plan_id ? <PlanLink id={kind.plan_id}>its plan</PlanLink> : null}
                    {kind.task_id ? <TaskLink id={kind.task_id} /> : null}
                  </p>
                </Card>
              </li>
            ))}
          </ul>
        </div>
      )}
    </Loaded>
  );
}
