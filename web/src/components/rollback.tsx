// Setting a table back to an earlier snapshot: a plan of its own, which is looked at before it goes.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { answer, api } from "../api/client";
import * as queries from "../api/queries";
import { Button, Dialog, Name, Trouble } from "./ui";

/** Offered to those who may remove what came since; `to` is the snapshot's id, in digits. */
export function RollBack({ table, to }: { table: { name: string; catalog: string; uuid: string }; to: string }) {
  const me = useQuery(queries.me);
  const client = useQueryClient();
  const navigate = useNavigate();
  const [isOpen, setOpen] = useState(false);
  const plan = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/tables/{uuid}/plans", {
          params: { path: { uuid: table.uuid }, query: { catalog: table.catalog } },
          body: { kind: "rollback_to_snapshot" },
          // JavaScript has no number with so many digits.
          bodySerializer: () => `{"kind": "rollback_to_snapshot", "to_snapshot": ${BigInt(to)}}`,
        }),
      ),
    onSuccess: ({ plan_id: planId }) => {
      void client.invalidateQueries({ queryKey: ["plans"] });
      void navigate({ to: "/plans/$planId", params: { planId } });
    },
  });
  if (!me.data?.permissions.includes("remove")) return null;
  return (
    <>
      <Button onClick={() => setOpen(true)}>Roll back…</Button>
      {isOpen ? (
        <Dialog title="Roll back" onClose={() => setOpen(false)}>
          <div className="flex flex-col gap-3">
            <p>
              <Name className="font-medium">{table.name}</Name>, to snapshot <code>{to}</code>
            </p>
            <p>
              A plan is made that says which commits the table loses, also those of others. Look at it, then let it go.
            </p>
            {plan.error ? <Trouble error={plan.error} /> : null}
            <div className="flex justify-end gap-2">
              <Button onClick={() => setOpen(false)}>Not now</Button>
              <Button look="main" disabled={plan.isPending} onClick={() => plan.mutate()}>
                Plan it
              </Button>
            </div>
          </div>
        </Dialog>
      ) : null}
    </>
  );
}
