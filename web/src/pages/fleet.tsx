// All tables: is anything wrong with them, and with which first?

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import * as queries from "../api/queries";
import { type Column, DataTable } from "../components/data-table";
import { TableLink, TaskLink } from "../components/links";
import { FleetMap } from "../components/pictures";
import {
  Badge,
  Button,
  Card,
  Empty,
  Field,
  Figures,
  HealthBadge,
  Input,
  Loaded,
  Name,
  PageHeading,
  Select,
  Time,
} from "../components/ui";
import { bytes, count, words } from "../lib/format";
import { haltOver, haltWords } from "../lib/halts";
import { treeOf } from "../lib/pictures";
import { type FleetSearch, MODES, TABLE_SORTS } from "../lib/search";
import { stateTone } from "../lib/states";
import { useTitle } from "../lib/title";

const fleetRoute = getRouteApi("/");

const SORTABLE = ["name", "health", "bytes", "files", "small_files", "delete_files", "last_look", "last_task"] as const;
const POOR = 69;
const LATEST = 4;

function filterOf(search: FleetSearch): queries.TableFilter {
  const { poor, sort: _sort, ...rest } = search;
  return { ...rest, ...(poor ? { health_max: POOR } : {}) };
}

function columns(halts: queries.Halt[]): Column<queries.Table>[] {
  return [
    {
      id: "name",
      heading: "Table",
      cell: (row) => {
        const halt = haltOver(halts, row);
        return (
          <>
            <TableLink table={row} />
            <span className="block text-soft">
              <Name className={row.problem ? "text-bad" : undefined}>
                {halt ? haltWords(halt) : (row.problem?.text ?? row.plan?.reason.text ?? "not planned yet")}
              </Name>
            </span>
          </>
        );
      },
    },
    { id: "health", heading: "Health", numeric: true, cell: (row) => <HealthBadge health={row.health} /> },
    { id: "mode", heading: "Mode", from: "md", cell: (row) => (row.mode ? <Badge>{row.mode}</Badge> : "") },
    {
      id: "bytes",
      heading: "Size",
      numeric: true,
      from: "sm",
      cell: (row) => (row.figures ? bytes(row.figures.size_bytes) : "–"),
    },
    {
      id: "files",
      heading: "Files",
      numeric: true,
      cell: (row) => (row.figures ? count(row.figures.data_files) : "–"),
    },
    {
      id: "small_files",
      heading: "Small",
      numeric: true,
      from: "md",
      cell: (row) => (row.figures ? count(row.figures.small_files) : "–"),
    },
    {
      id: "delete_files",
      heading: "Deletes",
      numeric: true,
      from: "lg",
      cell: (row) => (row.figures ? count(row.figures.delete_files) : "–"),
    },
    {
      id: "failures",
      heading: "Failed",
      numeric: true,
      from: "xl",
      cell: (row) => (row.failures > 0 ? <span className="text-bad">{count(row.failures)}</span> : "0"),
    },
    {
      id: "last_task",
      heading: "Last task",
      numeric: true,
      from: "lg",
      cell: (row) => <Time at={row.last_task_at} relative />,
    },
    {
      id: "last_look",
      heading: "Looked at",
      numeric: true,
      from: "xl",
      cell: (row) => <Time at={row.observed_at} relative />,
    },
  ];
}

export function FleetPage() {
  useTitle("Fleet");
  const search = fleetRoute.useSearch();
  const navigate = fleetRoute.useNavigate();
  const filter = filterOf(search);
  const sort = search.sort ?? "health";
  const status = useQuery(queries.status);
  const sums = useQuery(queries.totals(filter));
  const list = useInfiniteQuery(queries.tables({ ...filter, sort }));
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? [], [list.data]);
  const halts = status.data?.halts;
  const shown = useMemo(() => columns(halts ?? []), [halts]);
  const change = (next: Partial<FleetSearch>) =>
    void navigate({ search: (before) => ({ ...before, ...next }), replace: true });
  const isFiltered = Object.values({ ...search, sort: undefined }).some((value) => value !== undefined);
  return (
    <>
      <PageHeading title="Fleet" />
      <div className="flex flex-col gap-4">
        <Loaded query={sums} what="the sums">
          {(value) => (
            <Figures
              items={[
                {
                  name: "Tables",
                  value: count(value.tables),
                  note: value.unknown > 0 ? `${count(value.unknown)} not known yet` : "",
                },
                {
                  name: "Health",
                  value: value.health ?? "–",
                  note: value.health_min === null ? "" : `worst ${value.health_min}`,
                },
                {
                  name: "Poor",
                  value: count(value.grades?.poor ?? 0),
                  tone: (value.grades?.poor ?? 0) > 0 ? "bad" : "plain",
                },
                { name: "Size", value: bytes(value.bytes) },
                { name: "Data files", value: count(value.files), note: `${count(value.small_files)} small` },
                { name: "Failing", value: count(value.failing), tone: value.failing > 0 ? "bad" : "plain" },
              ]}
            />
          )}
        </Loaded>
        <div className="grid items-start gap-4 xl:grid-cols-[2fr_1fr]">
          <FleetOverview filter={filter} />
          <Latest />
        </div>
        <section aria-label="Tables" className="flex flex-col gap-3">
          <div className="flex flex-wrap items-end gap-3">
            <h2 className="text-base font-semibold">Tables</h2>
            <Field label="Name has">
              {(id) => (
                <Input
                  id={id}
                  type="search"
                  value={search.search ?? ""}
                  onChange={(event) => change({ search: event.target.value || undefined })}
                />
              )}
            </Field>
            <Field label="Mode">
              {(id) => (
                <Select
                  id={id}
                  value={search.mode ?? ""}
                  onChange={(event) => change({ mode: MODES.find((each) => each === event.target.value) })}
                >
                  <option value="">any</option>
                  {MODES.map((each) => (
                    <option key={each}>{each}</option>
                  ))}
                </Select>
              )}
            </Field>
            <Field label="Namespace">
              {(id) => <Namespaces id={id} value={search.namespace} onChange={(namespace) => change({ namespace })} />}
            </Field>
            <Toggle
              label="Poor health"
              isOn={search.poor === true}
              onChange={(isOn) => change({ poor: isOn || undefined })}
            />
            <Toggle
              label="Failing"
              isOn={search.failing === true}
              onChange={(isOn) => change({ failing: isOn || undefined })}
            />
            {isFiltered ? (
              <Link to="/" search={{ sort: search.sort }} className="text-accent underline">
                All tables
              </Link>
            ) : null}
          </div>
          <Loaded query={list} what="tables">
            {() =>
              rows.length === 0 ? (
                <Empty>
                  {isFiltered ? (
                    "No table is like that."
                  ) : (
                    <>
                      No tables yet: the server looks for them in{" "}
                      {status.data?.catalogs.map((each) => each.name).join(", ") || "no catalog"} every minute, and at
                      once when it is told of a commit: <code>icewright notify NAME --snapshot-id N</code>.
                    </>
                  )}
                </Empty>
              ) : (
                <DataTable
                  label="Tables"
                  rows={rows}
                  columns={shown}
                  keyOf={(row) => `${row.catalog} ${row.uuid}`}
                  sort={sort}
                  onSort={(next) => change({ sort: TABLE_SORTS.find((each) => each === next) })}
                  byServer
                  sortable={SORTABLE}
                  total={sums.data?.tables}
                  more={
                    list.hasNextPage
                      ? { load: () => void list.fetchNextPage(), isLoading: list.isFetchingNextPage }
                      : undefined
                  }
                />
              )
            }
          </Loaded>
        </section>
      </div>
    </>
  );
}

function Toggle({ label, isOn, onChange }: { label: string; isOn: boolean; onChange: (isOn: boolean) => void }) {
  return (
    <Button aria-pressed={isOn} onClick={() => onChange(!isOn)} look={isOn ? "main" : "plain"}>
      {label}
    </Button>
  );
}

function Namespaces({
  id,
  value,
  onChange,
}: {
  id: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}) {
  const found = useQuery(queries.namespaces);
  const names = found.data?.items.map((each) => each.name) ?? [];
  return (
    <Select
      id={id}
      value={value ?? ""}
      className="max-w-60"
      onChange={(event) => onChange(event.target.value || undefined)}
    >
      <option value="">any</option>
      {(value === undefined || names.includes(value) ? names : [value, ...names]).map((name) => (
        <option key={name}>{name}</option>
      ))}
    </Select>
  );
}

function FleetOverview({ filter }: { filter: queries.TableFilter }) {
  const found = useQuery(queries.largest(filter));
  const sums = useQuery(queries.totals(filter));
  const navigate = useNavigate();
  const items = found.data?.items;
  const branches = useMemo(() => treeOf(items ?? []), [items]);
  if (!items || branches.length === 0) return <div />;
  return (
    <FleetMap
      branches={branches}
      left={Math.max(0, (sums.data?.tables ?? 0) - items.length)}
      onPick={(leaf) =>
        void navigate({ to: "/tables/$uuid", params: { uuid: leaf.uuid }, search: { catalog: leaf.catalog } })
      }
    />
  );
}

function Latest() {
  const list = useInfiniteQuery(queries.tasks({}));
  const latest = list.data?.pages[0]?.items.slice(0, LATEST) ?? [];
  return (
    <Card
      title="What changed"
      actions={
        <Link to="/tasks" className="text-sm text-accent hover:underline">
          All tasks
        </Link>
      }
    >
      {latest.length === 0 ? (
        <p className="text-soft">Nothing was done yet.</p>
      ) : (
        <ul className="flex flex-col gap-2 text-sm">
          {latest.map((task) => (
            <li key={task.task_id}>
              <div className="flex flex-wrap items-center gap-2">
                <Badge tone={stateTone(task.state)}>{words(task.state)}</Badge>
                <TableLink table={{ name: task.table, catalog: task.catalog, uuid: task.uuid }} />
                <span className="text-soft">
                  <Time at={task.updated_at} relative />
                </span>
                <TaskLink id={task.task_id} />
              </div>
              <p>
                <Name>{task.outcome?.reason.text ?? task.reason.text}</Name>
              </p>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
