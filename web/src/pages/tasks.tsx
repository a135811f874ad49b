// All kinds of work in one list.

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import * as queries from "../api/queries";
import { type Column, DataTable } from "../components/data-table";
import { TableLink, TaskLink } from "../components/links";
import { Badge, Empty, Field, Figures, Loaded, Name, PageHeading, Select, Time } from "../components/ui";
import { count, plural, words } from "../lib/format";
import { TASK_STATES } from "../lib/search";
import { stateTone } from "../lib/states";
import { useTitle } from "../lib/title";

const tasksRoute = getRouteApi("/tasks");

export const TASK_COLUMNS: Column<queries.Task>[] = [
  {
    id: "state",
    heading: "State",
    by: (row) => row.state,
    cell: (row) => (
      <>
        <Badge tone={stateTone(row.state)}>{words(row.state)}</Badge>
        {row.state === "running" && row.progress ? (
          <span className="block text-xs text-soft">
            <Name>{row.progress.phase}</Name>, {count(row.progress.groups_done)} of{" "}
            {plural(row.progress.groups_total, "group")}
          </span>
        ) : null}
      </>
    ),
  },
  {
    id: "table",
    heading: "Table",
    by: (row) => row.table,
    cell: (row) => (
      <>
        <TableLink table={{ name: row.table, catalog: row.catalog, uuid: row.uuid }} tab="tasks" />
        <span className="block text-soft lg:hidden">
          <Name>{row.outcome?.reason.text ?? row.reason.text}</Name>
        </span>
      </>
    ),
  },
  { id: "kind", heading: "Action", from: "md", by: (row) => row.action.kind, cell: (row) => words(row.action.kind) },
  {
    id: "why",
    heading: "What became of it, or why",
    from: "lg",
    cell: (row) => (
      <span className={row.state === "failed" ? "text-bad" : undefined}>
        <Name>{row.outcome?.reason.text ?? row.reason.text}</Name>
      </span>
    ),
  },
  { id: "id", heading: "Task", cell: (row) => <TaskLink id={row.task_id} /> },
  {
    id: "attempt",
    heading: "Tries",
    numeric: true,
    from: "xl",
    by: (row) => row.attempt,
    cell: (row) => `${row.attempt} of ${row.attempts_max}`,
  },
  {
    id: "updated",
    heading: "Changed",
    numeric: true,
    from: "sm",
    by: (row) => row.updated_at,
    cell: (row) => <Time at={row.updated_at} relative />,
  },
];

export function TasksPage() {
  useTitle("Tasks");
  const { state } = tasksRoute.useSearch();
  const navigate = tasksRoute.useNavigate();
  const status = useQuery(queries.status);
  const list = useInfiniteQuery(queries.tasks({ state: state ? [state] : undefined }));
  const of = (name: string) => status.data?.tasks[name] ?? 0;
  return (
    <>
      <PageHeading title="Tasks">
        <Field label="State">
          {(id) => (
            <Select
              id={id}
              value={state ?? ""}
              onChange={(event) =>
                void navigate({ search: { state: TASK_STATES.find((each) => each === event.target.value) } })
              }
            >
              <option value="">all</option>
              {TASK_STATES.map((each) => (
                <option key={each} value={each}>
                  {words(each)}
                </option>
              ))}
            </Select>
          )}
        </Field>
      </PageHeading>
      <div className="mb-4">
        <Figures
          items={[
            { name: "At work", value: count(of("running") + of("committed") + of("in_doubt")) },
            { name: "Queued", value: count(of("queued")) },
            { name: "Done and verified", value: count(of("succeeded")) },
            { name: "Failed", value: count(of("failed")), tone: of("failed") > 0 ? "bad" : "plain" },
          ]}
        />
      </div>
      <Loaded query={list} what="tasks">
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.items);
          return rows.length === 0 ? (
            <Empty>
              {state ? (
                `No task is ${words(state)}.`
              ) : (
                <>
                  No tasks yet. Plans of tables in mode <code>auto</code> are queued by themselves; those that wait for
                  a person are in the Inbox.
                </>
              )}
            </Empty>
          ) : (
            <DataTable
              label="Tasks"
              rows={rows}
              columns={TASK_COLUMNS}
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
    </>
  );
}
