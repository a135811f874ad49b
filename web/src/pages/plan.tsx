// One plan: why, what it would bring, partition by partition; approve it, or let it be.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { answer, api } from "../api/client";
import * as queries from "../api/queries";
import { type Column, DataTable } from "../components/data-table";
import { TableLink } from "../components/links";
import { NoLongerWaits } from "../components/no-longer-waits";
import { PredictionView, verdictsLine } from "../components/plan";
import { Refuse, RefuseDialog } from "../components/refuse";
import {
  Badge,
  Button,
  Card,
  Dialog,
  Facts,
  Field,
  Input,
  Loaded,
  Name,
  PageHeading,
  Time,
  Trouble,
} from "../components/ui";
import { bytes, count, short, words } from "../lib/format";
import { useTitle } from "../lib/title";

const planRoute = getRouteApi("/plans/$planId");

type Verdict = queries.Plan["verdicts"][number];

const COLUMNS: Column<Verdict>[] = [
  {
    id: "path",
    heading: "Partition",
    by: (row) => row.path,
    cell: (row) => (
      <>
        <Name>{row.path || "(unpartitioned)"}</Name>
        <span className="block text-soft md:hidden">
          <Name>{row.reason.text}</Name>
        </span>
      </>
    ),
  },
  {
    id: "verdict",
    heading: "Verdict",
    by: (row) => row.verdict,
    cell: (row) => (
      <Badge tone={row.verdict === "rewrite" ? "busy" : row.verdict === "refuse" ? "bad" : "plain"}>
        {row.verdict}
      </Badge>
    ),
  },
  {
    id: "before",
    heading: "Files",
    numeric: true,
    by: (row) => row.files_before,
    cell: (row) => count(row.files_before),
  },
  { id: "after", heading: "After", numeric: true, by: (row) => row.files_after, cell: (row) => count(row.files_after) },
  {
    id: "bytes",
    heading: "Read",
    numeric: true,
    from: "sm",
    by: (row) => row.input_bytes,
    cell: (row) => bytes(row.input_bytes),
  },
  { id: "why", heading: "Why", from: "md", cell: (row) => <Name>{row.reason.text}</Name> },
];

export function PlanPage() {
  const { planId } = planRoute.useParams();
  useTitle(`Plan ${short(planId)}`);
  const plan = useQuery(queries.plan(planId));
  return (
    <Loaded query={plan} what="the plan">
      {(data) => <PlanView key={planId} plan={data} />}
    </Loaded>
  );
}

function PlanView({ plan }: { plan: queries.Plan }) {
  const kinds = plan.actions.map((action) => words(action.kind));
  return (
    <>
      <PageHeading
        title={
          <>
            Plan of <TableLink table={{ name: plan.table, catalog: plan.catalog, uuid: plan.uuid }} />
          </>
        }
      >
        <Decide plan={plan} isWaiting={plan.waits} />
      </PageHeading>
      <div className="flex flex-col gap-4">
        {plan.refused ? (
          <Card title="Refused">
            <p>
              <Name className="font-medium">{plan.refused.refused_by}</Name> refused it{" "}
              <Time at={plan.refused.refused_at} relative />: <Name>{plan.refused.why}</Name>
            </p>
            <p className="text-sm text-soft">
              A plan of this kind waits again when the policy changes, for data files when the table does, and at{" "}
              <Time at={plan.refused.asked_again_at} /> at the latest.
            </p>
          </Card>
        ) : null}
        <Card
          title={
            kinds.length > 0 ? (
              <span className="inline-block first-letter:uppercase">{kinds.join(", ")}</span>
            ) : (
              "Nothing is to be done"
            )
          }
        >
          <p className="mb-2 font-medium">
            <Name>{plan.reason.text}</Name>
          </p>
          <ul className="list-disc pl-5 text-sm">
            {plan.explanation.map((line) => (
              <li key={line}>
                <Name>{line}</Name>
              </li>
            ))}
          </ul>
        </Card>
        {plan.prediction ? (
          <Card title="What it would bring">
            <PredictionView prediction={plan.prediction} />
          </Card>
        ) : null}
        {plan.verdicts.length > 0 ? (
          <section aria-label="Partitions">
            <h2 className="mb-2 text-base font-semibold">Partition by partition</h2>
            <p className="mb-2 text-sm text-soft">{verdictsLine(plan)}</p>
            <DataTable
              label="Verdicts by partition"
              rows={plan.verdicts}
              columns={COLUMNS}
              keyOf={(row) => `${row.spec_id} ${row.values}`}
            />
          </section>
        ) : null}
        <Card title="About this plan">
          <Facts
            items={[
              ["Id", <code key="id">{plan.plan_id}</code>],
              ["Planned", <Time key="at" at={plan.planned_at} />],
              ["Mode of the table", plan.mode],
              ["Snapshot", plan.snapshot_id === null ? "none" : <code key="snapshot">{plan.snapshot_id}</code>],
              ["In a terminal", <code key="cli">icewright approve {plan.plan_id} --show</code>],
            ]}
          />
        </Card>
      </div>
    </>
  );
}

function Decide({ plan, isWaiting }: { plan: queries.Plan; isWaiting: boolean }) {
  const [open, setOpen] = useState<"approve" | "refuse" | "apply" | null>(null);
  const me = useQuery(queries.me);
  const may = me.data?.permissions ?? [];
  const close = () => setOpen(null);
  if (plan.refused) return <Badge tone="bad">refused</Badge>;
  const controls = () => {
    if (isWaiting && may.includes("approve"))
      return (
        <>
          <Button look="main" onClick={() => setOpen("approve")}>
            Approve…
          </Button>
          <Refuse onOpen={() => setOpen("refuse")} />
        </>
      );
    if (isWaiting) return <Badge tone="fair">waits for somebody who may approve it</Badge>;
    if (plan.can_apply && may.includes("operate"))
      return (
        <Button look="main" onClick={() => setOpen("apply")}>
          Apply…
        </Button>
      );
    return plan.can_apply ? null : <Badge>nothing to apply</Badge>;
  };
  return (
    <>
      {controls()}
      {/* A dialogue that somebody has opened stays, whatever becomes of the plan: they are told, and approve no other. */}
      {open === "approve" ? <Approve plan={plan} isWaiting={isWaiting} onClose={close} /> : null}
      {open === "refuse" ? <RefuseDialog plan={waited(plan)} isWaiting={isWaiting} onClose={close} /> : null}
      {open === "apply" ? <Apply plan={plan} onClose={close} /> : null}
    </>
  );
}

const waited = (plan: queries.Plan) => ({ ...plan, kind: plan.actions[0]?.kind ?? "", since: plan.planned_at });

function useDecision(ask: () => Promise<queries.Task>) {
  const client = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: ask,
    onSuccess: (task) => {
      for (const key of ["plans", "tasks", "tables"]) void client.invalidateQueries({ queryKey: [key] });
      void navigate({ to: "/tasks/$taskId", params: { taskId: task.task_id } });
    },
  });
}

function Approve({ plan, isWaiting, onClose }: { plan: queries.Plan; isWaiting: boolean; onClose: () => void }) {
  const me = useQuery(queries.me);
  const [name, setName] = useState(me.data?.shown || me.data?.name || "");
  const decision = useDecision(() =>
    answer(
      api.POST("/api/v1/plans/{plan_id}/approve", {
        params: { path: { plan_id: plan.plan_id } },
        body: { approved_by: name },
      }),
    ),
  );
  return (
    <Dialog title="Approve this plan" onClose={onClose}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          decision.mutate();
        }}
      >
        <p>
          Its task is queued at once for <Name className="font-medium">{plan.table}</Name>.
        </p>
        {plan.to_approve ? <Name>{plan.to_approve.text}</Name> : null}
        <Field label="Your name, for the audit">
          {(id) => <Input id={id} required value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
        {isWaiting || decision.isPending || decision.isSuccess ? null : <NoLongerWaits plan={waited(plan)} />}
        {decision.error ? <Trouble error={decision.error} /> : null}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{isWaiting ? "Not now" : "Close"}</Button>
          <Button look="main" type="submit" disabled={!isWaiting || decision.isPending || !name.trim()}>
            Approve
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function Apply({ plan, onClose }: { plan: queries.Plan; onClose: () => void }) {
  const decision = useDecision(() =>
    answer(api.POST("/api/v1/plans/{plan_id}/apply", { params: { path: { plan_id: plan.plan_id } } })),
  );
  return (
    <Dialog title="Apply this plan" onClose={onClose}>
      <div className="flex flex-col gap-3">
        <p>
          Its task is queued at once for <Name className="font-medium">{plan.table}</Name>.
        </p>
        {decision.error ? <Trouble error={decision.error} /> : null}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Not now</Button>
          <Button look="main" disabled={decision.isPending} onClick={() => decision.mutate()}>
            Apply
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
