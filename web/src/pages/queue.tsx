// What is at work, what waits and why, and what may be held at once.

import { useInfiniteQuery, useMutation, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { answer, api, type Schemas } from "../api/client";
import * as queries from "../api/queries";
import { Autotune } from "../components/autotune";
import { type Column, DataTable } from "../components/data-table";
import { TableLink, TaskLink } from "../components/links";
import { QueuePicture } from "../components/pictures";
import {
  Badge,
  Button,
  Card,
  Dialog,
  Empty,
  Field,
  Input,
  Loaded,
  Name,
  PageHeading,
  Select,
  Time,
  Trouble,
} from "../components/ui";
import { bytes, count } from "../lib/format";
import { haltPart, haltWords } from "../lib/halts";
import { useNow } from "../lib/now";
import { gantt, since } from "../lib/pictures";
import { useTitle } from "../lib/title";

type Group = Schemas["GroupView"];
const WAITS_SHOWN = 20;
const MINUTE_MS = 60_000;

function of(held: string, most: string | null | undefined): string {
  return most === null || most === undefined ? held : `${held} of ${most}`;
}

const COLUMNS: Column<Group>[] = [
  { id: "name", heading: "Resource group", by: (row) => row.name, cell: (row) => <Name>{row.name}</Name> },
  { id: "waiting", heading: "Waiting", numeric: true, by: (row) => row.waiting, cell: (row) => count(row.waiting) },
  {
    id: "tasks",
    heading: "Tasks",
    numeric: true,
    by: (row) => row.held.tasks,
    cell: (row) => of(count(row.held.tasks), row.definition?.tasks_max?.toString()),
  },
  {
    id: "cores",
    heading: "Cores",
    numeric: true,
    from: "md",
    by: (row) => row.held.cores,
    cell: (row) => of(count(row.held.cores), row.definition?.cores?.toString()),
  },
  {
    id: "memory",
    heading: "Memory",
    numeric: true,
    from: "md",
    by: (row) => row.held.memory_bytes,
    cell: (row) =>
      of(
        bytes(row.held.memory_bytes),
        row.definition?.memory_bytes == null ? null : bytes(row.definition.memory_bytes),
      ),
  },
  {
    id: "optimizers",
    heading: "Optimizers",
    numeric: true,
    from: "sm",
    by: (row) => row.optimizers,
    cell: (row) => count(row.optimizers + row.submitters.length),
  },
  {
    id: "refused",
    heading: "Takes nothing because",
    from: "lg",
    cell: (row) =>
      row.refused ? (
        <>
          <Name>{row.refused.text}</Name>
          {row.refused_until === null ? null : (
            <>
              , until <Time at={row.refused_until} />
            </>
          )}
        </>
      ) : (
        ""
      ),
  },
];

export function QueuePage() {
  useTitle("Queue");
  const me = useQuery(queries.me);
  const status = useQuery(queries.status);
  const groups = useQuery(queries.groups);
  const [isOpen, setOpen] = useState(false);
  const mayOperate = me.data?.permissions.includes("operate") ?? false;
  return (
    <>
      <PageHeading title="Queue and capacity">
        {mayOperate ? <Button onClick={() => setOpen(true)}>Halt…</Button> : null}
      </PageHeading>
      {isOpen ? <HaltDialog onClose={() => setOpen(false)} /> : null}
      <div className="flex flex-col gap-4">
        <Halts halts={status.data?.halts ?? []} mayOperate={mayOperate} />
        <Loaded query={groups} what="resource groups">
          {({ items }) => (
            <DataTable label="Resource groups" rows={items} columns={COLUMNS} keyOf={(row) => row.name} />
          )}
        </Loaded>
        <Autotune mayOperate={mayOperate} />
        <Waits />
        <OverTime />
      </div>
    </>
  );
}

function Halts({ halts, mayOperate }: { halts: queries.Halt[]; mayOperate: boolean }) {
  const client = useQueryClient();
  const resume = useMutation({
    mutationFn: (halt: queries.Halt) =>
      answer(
        api.POST("/api/v1/queue/resume", {
          body: { part: halt.kind, name: halt.name ?? "", reason: "", preview: false },
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: ["status"] }),
  });
  if (halts.length === 0) return null;
  return (
    <Card title="What people have halted">
      <ul className="flex flex-col gap-2 text-sm">
        {halts.map((halt) => (
          <li
            key={`${halt.kind} ${halt.catalog ?? ""} ${halt.uuid ?? halt.name ?? ""}`}
            className="flex flex-wrap items-center gap-2"
          >
            <Name>{haltWords(halt)}</Name>
            <Time at={halt.since} relative />
            {mayOperate ? (
              <Button disabled={resume.isPending} onClick={() => resume.mutate(halt)}>
                Let {haltPart(halt)} go on
              </Button>
            ) : null}
          </li>
        ))}
      </ul>
      {resume.error ? <Trouble error={resume.error} /> : null}
    </Card>
  );
}

const WAYS = {
  pause: "Pause: nothing new starts; what runs goes on",
  drain: "Drain: nothing new starts, until nothing is at work",
  stop: "Stop: nothing new starts, and what runs is cancelled",
} as const;

function HaltDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [way, setWay] = useState<keyof typeof WAYS>("pause");
  const [part, setPart] = useState<"all" | "group" | "catalog" | "table">("all");
  const [name, setName] = useState("");
  const [reason, setReason] = useState("");
  const body = { part, name: part === "all" ? "" : name, reason, preview: false };
  const halt = useMutation({
    mutationFn: () => answer(api.POST(`/api/v1/queue/${way}`, { body })),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ["status"] });
      onClose();
    },
  });
  return (
    <Dialog title="Halt a part of the queue" onClose={onClose}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          halt.mutate();
        }}
      >
        <Field label="How">
          {(id) => (
            <Select id={id} value={way} onChange={(event) => setWay(event.target.value as keyof typeof WAYS)}>
              {Object.entries(WAYS).map(([key, words]) => (
                <option key={key} value={key}>
                  {words}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label="What">
          {(id) => (
            <Select id={id} value={part} onChange={(event) => setPart(event.target.value as typeof part)}>
              <option value="all">everything</option>
              <option value="group">a resource group</option>
              <option value="catalog">a catalog</option>
              <option value="table">a table</option>
            </Select>
          )}
        </Field>
        {part === "all" ? null : (
          <Field label={part === "table" ? "Its full name, as in lake.db.events" : "Its name"}>
            {(id) => <Input id={id} required value={name} onChange={(event) => setName(event.target.value)} />}
          </Field>
        )}
        <Field label="Why, for those who see it">
          {(id) => <Input id={id} value={reason} onChange={(event) => setReason(event.target.value)} />}
        </Field>
        {halt.error ? <Trouble error={halt.error} /> : null}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Not now</Button>
          <Button look="danger" type="submit" disabled={halt.isPending}>
            Halt
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** The first tasks that are queued, each with what it waits for as soon as that is known. */
function useQueued() {
  const queued = useInfiniteQuery(queries.tasks({ state: ["queued"] }));
  const rows = useMemo(() => queued.data?.pages.flatMap((page) => page.items) ?? [], [queued.data]);
  const first = useMemo(() => rows.slice(0, WAITS_SHOWN), [rows]);
  const documents = useQueries({
    queries: first.map((task) => ({ ...queries.task(task.task_id), refetchInterval: MINUTE_MS })),
    combine: documentsOf,
  });
  return { queued, rows, first, documents };
}

function documentsOf(found: { data: { value: queries.TaskDocument } | undefined }[]) {
  return found.map(({ data }) => data?.value);
}

function Waits() {
  const { queued, rows, first, documents } = useQueued();
  return (
    <Card title="Why what is queued waits">
      <Loaded query={queued} what="the queue">
        {() =>
          first.length === 0 ? (
            <Empty>Nothing is queued.</Empty>
          ) : (
            <ul className="flex flex-col gap-2 text-sm">
              {first.map((task, index) => {
                const document = documents[index];
                return (
                  <li key={task.task_id} className="border-t border-line pt-2 first:border-0 first:pt-0">
                    <div className="flex flex-wrap items-center gap-2">
                      <TaskLink id={task.task_id} />
                      <TableLink table={{ name: task.table, catalog: task.catalog, uuid: task.uuid }} />
                      <Badge>{task.resource_group}</Badge>
                    </div>
                    {document?.waits.map((wait) => (
                      <p key={wait.reason.code + wait.reason.text}>
                        Waits: <Name>{wait.reason.text}</Name>
                      </p>
                    ))}
                    {document?.start ? (
                      <p className="text-soft">
                        {document.start.at === null ? (
                          "It is not known when it starts"
                        ) : (
                          <>
                            Starts about <Time at={document.start.at} />, by an estimate
                          </>
                        )}
                        {document.waits.some((wait) => wait.reason.text === document.start?.reason.text) ? (
                          "."
                        ) : (
                          <>
                            : <Name>{document.start.reason.text}</Name>
                          </>
                        )}
                      </p>
                    ) : null}
                  </li>
                );
              })}
              {rows.length > first.length || queued.hasNextPage ? (
                <li className="text-soft">The first {first.length}; the others are in Tasks.</li>
              ) : null}
            </ul>
          )
        }
      </Loaded>
    </Card>
  );
}

const SPANS = {
  "the last hour": 1,
  "the last 6 hours": 6,
  "the last day": 24,
  "the last week": 168,
  "the last 30 days": 720,
} as const;
type SpanName = keyof typeof SPANS;
const HOUR_MS = 60 * MINUTE_MS;

function OverTime() {
  const [spanName, setSpan] = useState<SpanName>("the last day");
  const span = SPANS[spanName] * HOUR_MS;
  const attempts = useQuery(queries.attempts({}));
  const groups = useQuery(queries.groups);
  const { first, documents } = useQueued();
  const navigate = useNavigate();
  const minute = Math.floor(useNow() / MINUTE_MS) * MINUTE_MS;
  const tries = attempts.data?.items;
  const held = groups.data?.items;
  const found = useMemo(() => {
    const waiting = first.map((task, index) => ({
      task_id: task.task_id,
      table: task.table,
      kind: task.action.kind,
      resource_group: task.resource_group,
      created_at: task.created_at,
      reasons: documents[index]?.waits.map((wait) => wait.reason.text) ?? [],
      starts_at: documents[index]?.start?.at ?? null,
    }));
    return gantt(since(tries ?? [], minute - span), waiting, held ?? [], minute);
  }, [tries, held, first, documents, minute, span]);
  if (!attempts.data || (attempts.data.items.length === 0 && first.length === 0)) return null;
  return (
    <QueuePicture
      found={found}
      now={minute}
      span={span}
      actions={
        <Select
          aria-label="How far back"
          value={spanName}
          onChange={(event) => setSpan(event.target.value as SpanName)}
        >
          {Object.keys(SPANS).map((name) => (
            <option key={name}>{name}</option>
          ))}
        </Select>
      }
      onPick={(task) => void navigate({ to: "/tasks/$taskId", params: { taskId: task } })}
    />
  );
}
