// A plan somebody is about to decide on, and that does not wait any more.

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import * as queries from "../api/queries";
import { PlanLink, TaskLink } from "./links";

/** A plan that waited, planned at `since`. */
export type Waited = Pick<queries.Plan, "plan_id" | "uuid" | "catalog"> & { kind: string; since: number };

/** What became of a plan that waited when its dialogue was opened, with the way to what is there now. */
export function NoLongerWaits({ plan }: { plan: Waited }) {
  const plans = useQuery(queries.plansOf({ uuid: plan.uuid, catalog: plan.catalog }));
  const tasks = useInfiniteQuery(queries.tasks({ table: plan.uuid, catalog: plan.catalog }));
  const task = tasks.data?.pages.flatMap((page) => page.items).find((one) => one.plan_id === plan.plan_id);
  const newer = plans.data?.items.find(
    (one) => one.planned_at >= plan.since && one.plan_id !== plan.plan_id && one.actions[0]?.kind === plan.kind,
  );
  return (
    <div role="alert" className="rounded-lg border border-fair p-3">
      {task ? (
        <p>
          This plan has been approved meanwhile: <TaskLink id={task.task_id} />.
        </p>
      ) : newer ? (
        <>
          <p>A newer plan replaced this one, which is not approved.</p>
          <PlanLink id={newer.plan_id}>Look at the newer plan</PlanLink>
        </>
      ) : (
        <p>This plan does not wait any more, and is not approved.</p>
      )}
    </div>
  );
}
