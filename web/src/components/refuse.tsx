// Refusing a plan that waits: with a reason, for those who read it later.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "../api/client";
import * as queries from "../api/queries";
import { Button, Dialog, Field, Input, Name, Trouble } from "./ui";

const WHY_LENGTH_MAX = 1000;

/** Offered to those who may approve; `of` is said to a screen reader, where several are on one page. */
export function Refuse({ planId, table, of }: { planId: string; table: string; of?: string }) {
  const me = useQuery(queries.me);
  const [isOpen, setOpen] = useState(false);
  if (!me.data?.permissions.includes("approve")) return null;
  return (
    <>
      <Button look="danger" onClick={() => setOpen(true)}>
        Refuse…{of ? <span className="sr-only"> {of}</span> : null}
      </Button>
      {isOpen ? <RefuseDialog planId={planId} table={table} me={me.data} onClose={() => setOpen(false)} /> : null}
    </>
  );
}

function RefuseDialog({
  planId,
  table,
  me,
  onClose,
}: {
  planId: string;
  table: string;
  me: { name: string; shown: string };
  onClose: () => void;
}) {
  const [why, setWhy] = useState("");
  const [name, setName] = useState(me.shown || me.name);
  const client = useQueryClient();
  const refusal = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/plans/{plan_id}/refuse", {
          params: { path: { plan_id: planId } },
          body: { why, refused_by: name },
        }),
      ),
    onSuccess: () => close(),
  });
  // Also where somebody else was faster: what the page shows is old then. But only once that was read here: a page
  // that knows of it has no such dialog.
  const close = () => {
    onClose();
    for (const key of ["plans", "tables"]) void client.invalidateQueries({ queryKey: [key] });
  };
  return (
    <Dialog title="Refuse this plan" onClose={close}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          refusal.mutate();
        }}
      >
        <p>
          Nothing is done to <Name className="font-medium">{table}</Name> by this plan, and nobody can approve it any
          more. A plan of this kind waits again when the policy changes, for data files when the table does, and in a
          week at the latest.
        </p>
        <Field label="Why">
          {(id) => (
            <Input
              id={id}
              required
              maxLength={WHY_LENGTH_MAX}
              value={why}
              onChange={(event) => setWhy(event.target.value)}
            />
          )}
        </Field>
        <Field label="Your name, for the audit">
          {(id) => <Input id={id} required value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
        {refusal.error ? <Trouble error={refusal.error} /> : null}
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Not now</Button>
          <Button look="danger" type="submit" disabled={refusal.isPending || !why.trim() || !name.trim()}>
            Refuse
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
