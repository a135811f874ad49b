// What was removed and can be put back, until it is purged.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { answer, api, type Schemas } from "../api/client";
import * as queries from "../api/queries";
import { type Column, DataTable } from "../components/data-table";
import { TaskLink } from "../components/links";
import { Button, Dialog, Empty, Field, Input, Loaded, Name, Time, Trouble } from "../components/ui";
import { bytes, count, plural } from "../lib/format";
import { useNow } from "../lib/now";

type Held = Schemas["QuarantineView"];
type Ask = "files" | "back" | "purge" | "purge-gone";

const COLUMNS: Column<Held>[] = [
  {
    id: "table",
    heading: "Table",
    by: (row) => row.table,
    cell: (row) => (
      <>
        <Name>{row.table}</Name>
        {row.dropped_at === null ? null : (
          <span className="block text-sm text-soft">
            dropped <Time at={row.dropped_at} relative />
          </span>
        )}
        {row.why ? (
          <span className="block text-sm text-bad">
            <Name>{row.why.text}</Name>
          </span>
        ) : null}
      </>
    ),
  },
  { id: "cause", heading: "Cause", from: "sm", by: (row) => row.cause, cell: (row) => row.cause },
  {
    id: "files",
    heading: "Held files",
    numeric: true,
    by: (row) => row.held_files,
    cell: (row) => count(row.held_files),
  },
  { id: "bytes", heading: "Size", numeric: true, by: (row) => row.held_bytes, cell: (row) => bytes(row.held_bytes) },
  {
    id: "begun",
    heading: "Begun",
    from: "md",
    by: (row) => row.begun_at,
    cell: (row) => <Time at={row.begun_at} relative />,
  },
  {
    id: "purged",
    heading: "May be purged from",
    from: "md",
    by: (row) => row.purged_from,
    cell: (row) => <Time at={row.purged_from} />,
  },
  { id: "task", heading: "Task", cell: (row) => <TaskLink id={row.task_id} /> },
];

export function Quarantine() {
  const list = useQuery(queries.quarantine);
  const me = useQuery(queries.me);
  const [asked, setAsked] = useState<{ ask: Ask; held: Held } | null>(null);
  const may = me.data?.permissions ?? [];
  const actions: Column<Held> = {
    id: "do",
    heading: "Do",
    cell: (row) => {
      const offered: [Ask, string, boolean][] = [
        ["files", "Files", true],
        ["back", "Put back…", may.includes("undo") && row.dropped_at === null && row.held_files > 0],
        ["purge", "Purge…", may.includes("remove") && row.dropped_at === null && row.held_files > 0],
        ["purge-gone", "Purge…", may.includes("approve") && row.dropped_at !== null && row.held_files > 0],
      ];
      return (
        <div className="flex flex-wrap gap-2">
          {offered
            .filter(([, , isOffered]) => isOffered)
            .map(([ask, said]) => (
              <Button
                key={ask}
                look={ask.startsWith("purge") ? "danger" : "plain"}
                onClick={() => setAsked({ ask, held: row })}
              >
                {said}
                <span className="sr-only"> of {row.table}</span>
              </Button>
            ))}
        </div>
      );
    },
  };
  const close = () => setAsked(null);
  return (
    <Loaded query={list} what="the quarantine">
      {({ items }) => (
        <>
          {items.length === 0 ? (
            <Empty>No file is in quarantine. What is removed from a table waits here before it is gone for good.</Empty>
          ) : (
            <DataTable label="Quarantine" rows={items} columns={[...COLUMNS, actions]} keyOf={(row) => row.task_id} />
          )}
          {asked?.ask === "files" ? <Files held={asked.held} onClose={close} /> : null}
          {asked?.ask === "back" ? <PutBack held={asked.held} onClose={close} /> : null}
          {asked?.ask === "purge" || asked?.ask === "purge-gone" ? <Purge held={asked.held} onClose={close} /> : null}
        </>
      )}
    </Loaded>
  );
}

const FILES = 200;

function Files({ held, onClose }: { held: Held; onClose: () => void }) {
  const list = useQuery({
    queryKey: ["quarantine", "files", held.task_id],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/quarantine/{task_id}/files", {
          params: { path: { task_id: held.task_id }, query: { limit: FILES } },
          signal,
        }),
      ),
  });
  return (
    <Dialog title="Files in quarantine" onClose={onClose}>
      <div className="flex flex-col gap-3">
        <Name className="font-medium">{held.table}</Name>
        <Loaded query={list} what="files">
          {({ items, next_cursor: more }) => (
            <>
              <ul className="flex max-h-96 flex-col gap-2 overflow-auto text-sm">
                {items.map((file) => (
                  <li key={file.path}>
                    <Name>{file.path}</Name>
                    <span className="block text-soft">
                      {bytes(file.size_bytes)}, may be purged from <Time at={file.purged_from} />
                    </span>
                  </li>
                ))}
              </ul>
              {more ? (
                <p className="text-sm text-soft">
                  The first {FILES} of {count(held.held_files)}.
                </p>
              ) : null}
            </>
          )}
        </Loaded>
        <div className="flex justify-end">
          <Button onClick={onClose}>Close</Button>
        </div>
      </div>
    </Dialog>
  );
}

function PutBack({ held, onClose }: { held: Held; onClose: () => void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const undo = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/tasks/{task_id}/undo", { params: { path: { task_id: held.task_id } } })),
    onSuccess: (plan) => {
      void client.invalidateQueries({ queryKey: ["plans"] });
      void navigate({ to: "/plans/$planId", params: { planId: plan.plan_id } });
    },
  });
  return (
    <Dialog title="Put files back" onClose={onClose}>
      <div className="flex flex-col gap-3">
        <p>
          A plan is made that puts {plural(held.held_files, "file")} of{" "}
          <Name className="font-medium">{held.table}</Name> back to where they were. Look at it, then apply it.
        </p>
        {undo.error ? <Trouble error={undo.error} /> : null}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Not now</Button>
          <Button look="main" disabled={undo.isPending} onClick={() => undo.mutate()}>
            Make the plan
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

interface Purged {
  before: Held;
  after: Held;
  waits: string;
}

/** Page by page, as the server does it; what is interrupted goes on when it is asked for again. */
async function purge(held: Held): Promise<Purged> {
  let cursor: string | null = null;
  let waits = "";
  for (;;) {
    const params = { path: { task_id: held.task_id }, query: cursor === null ? {} : { cursor } };
    const found: Schemas["PurgeAnswer"] = await answer(api.POST("/api/v1/quarantine/{task_id}/purge", { params }));
    waits ||= found.waits?.text ?? "";
    cursor = found.next_cursor;
    if (cursor === null) return { before: held, after: found.quarantine, waits };
  }
}

async function purgeGone(held: Held, name: string): Promise<Purged> {
  let last = held;
  for (;;) {
    const found: Schemas["PurgeOfGoneAnswer"] = await answer(
      api.POST("/api/v1/quarantine/{task_id}/purge-of-gone-table", {
        params: { path: { task_id: held.task_id } },
        body: { purged_by: name },
      }),
    );
    const now = found.quarantine;
    if (found.waits !== null || now.held_files === 0 || now.purged_files === last.purged_files)
      return { before: held, after: now, waits: found.waits?.text ?? "" };
    last = now;
  }
}

function Purge({ held, onClose }: { held: Held; onClose: () => void }) {
  const now = useNow();
  const me = useQuery(queries.me);
  const client = useQueryClient();
  const [typed, setTyped] = useState("");
  const isGone = held.dropped_at !== null;
  const from = held.purged_from;
  const isEarly = from === null || from > now;
  const change = useMutation({
    mutationFn: () => (isGone ? purgeGone(held, me.data?.shown || me.data?.name || "") : purge(held)),
    onSettled: () => client.invalidateQueries({ queryKey: ["quarantine"] }),
  });
  const done = change.data;
  return (
    <Dialog title="Purge files for good" onClose={onClose}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate();
        }}
      >
        <p>
          {plural(held.held_files, "file")} ({bytes(held.held_bytes)}) of{" "}
          <Name className="font-medium">{held.table}</Name>
          {isGone ? ", which was dropped, are deleted and cannot be had back." : " are deleted and cannot be had back."}
          {isGone ? null : " What the table needs by now is put back first."}
        </p>
        {isEarly ? (
          <p>
            {from === null ? "Nothing of it is in quarantine." : "Not yet, for anybody: the first of them may go from "}
            {from === null ? null : <Time at={from} />}
          </p>
        ) : done ? (
          <p role="status">
            {plural(done.after.purged_files - done.before.purged_files, "file")} purged,{" "}
            {plural(done.after.restored_files - done.before.restored_files, "file")} put back,{" "}
            {plural(done.after.held_files, "file")} still in quarantine. {done.waits ? <Name>{done.waits}</Name> : null}
          </p>
        ) : (
          <Field label={`To be sure, type the table's name: ${held.table}`}>
            {(id) => (
              <Input id={id} value={typed} autoComplete="off" onChange={(event) => setTyped(event.target.value)} />
            )}
          </Field>
        )}
        {change.error ? <Trouble error={change.error} /> : null}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{done ? "Close" : "Not now"}</Button>
          {isEarly || done ? null : (
            <Button look="danger" type="submit" disabled={change.isPending || typed !== held.table}>
              Purge
            </Button>
          )}
        </div>
      </form>
    </Dialog>
  );
}
