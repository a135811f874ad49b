// Refusing a plan that waits: with a reason, for those who read it later.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "../api/client";
import * as queries from "../api/queries";
import { NoLongerWaits, type Waited } from "./no-longer-waits";
import { Button, Dialog, Field, Input, Name, Trouble } from "./ui";

const WHY_LENGTH_MAX = 1000;

/** Offered to those who may approve; `of` is said to a screen reader, where several are on one page. */
export function Refuse({ onOpen, of }: { onOpen: () => void; of?: string }) {
  const me = useQuery(queries.me);
  if (!me.data?.permissions.includes("approve")) return null;
  return (
    <Button look="danger" onClick={onOpen}>
      Refuse…{of ? <span className="sr-only"> {of}</span> : null}
    </Button>
  );
}

/** Belongs to the page, not to the plan in it: what somebody wrote stays, whatever becomes of the plan. */
export function RefuseDialog({
  plan,
  isWaiting,
  onClose,
}: {
  plan: Waited & { table: string };
  isWaiting: boolean;
  onClose: () => void;
}) {
  const me = useQuery(queries.me);
  const [why, setWhy] = useState("");
  const [name, setName] = useState(me.data?.shown || me.data?.name || "");
  const client = useQueryClient();
  const refusal = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/plans/{plan_id}/refuse", {
          params: { path: { plan_id: plan.plan_id } },
          body: { why, refused_by: name },
        }),
      ),
    onSuccess: () => close(),
  });
  // Also where somebody else was faster: what the page shows is old then.
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
          Nothing is done to <Name className="font-medium">{plan.table}</Name> by this plan, and it cannot be approved
          any more. A plan of this kind waits again when the policy changes, for data files when the table does, and in
          a week at the latest.
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
        {isWaiting || refusal.isPending || refusal.isSuccess ? null : <NoLongerWaits plan={plan} />}
        {refusal.error ? <Trouble error={refusal.error} /> : null}
        <div className="flex justify-end gap-2">
          <Button onClick={close}>{isWaiting ? "Not now" : "Close"}</Button>
          <Button look="danger" type="submit" disabled={!isWaiting || refusal.isPending || !why.trim() || !name.trim()}>
            Refuse
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
