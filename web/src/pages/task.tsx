// One task: how far it is, what it took beside what was predicted, each attempt, and what can be done about it.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { answer, api } from "../api/client";
import * as queries from "../api/queries";
import { PlanLink, SparkApplication, TableLink } from "../components/links";
import { ChangesTable, PredictionView } from "../components/plan";
import { RollBack } from "../components/rollback";
import { TaskLog } from "../components/task-log";
import {
  Badge,
  Button,
  Card,
  Dialog,
  Facts,
  Loaded,
  Name,
  PageHeading,
  Progress,
  Time,
  Trouble,
} from "../components/ui";
import { count, duration, plural, short, words } from "../lib/format";
import { haltOver, haltWords } from "../lib/halts";
import { changes, changeWords, committed, compared, seenAround } from "../lib/predictions";
import { stateTone } from "../lib/states";
import { useTitle } from "../lib/title";

const taskRoute = getRouteApi("/tasks/$taskId");

export function TaskPage() {
  const { taskId } = taskRoute.useParams();
  useTitle(`Task ${short(taskId)}`);
  const task = useQuery(queries.task(taskId));
  return (
    <Loaded query={task} what="the task">
      {({ value, tag }) => <TaskView document={value} tag={tag} />}
    </Loaded>
  );
}

function TaskView({ document, tag }: { document: queries.TaskDocument; tag: string | null }) {
  const { task, history, attempts, waits, start } = document;
  const status = useQuery(queries.status);
  const halt = haltOver(status.data?.halts ?? [], task);
  const optimizerOf = (id: string) => {
    const seen = status.data?.optimizers.find(({ hello }) => hello.optimizer_id === id);
    return seen ? <SparkApplication hello={seen.hello} /> : null;
  };
  const isHeld =
    (task.state === "queued" && waits.length === 0) || (task.state === "running" && halt?.state === "stopped");
  return (
    <>
      <PageHeading
        title={
          <span className="flex flex-wrap items-center gap-3">
            <span>
              <span className="inline-block first-letter:uppercase">{words(task.action.kind)}</span> of{" "}
              <TableLink table={{ name: task.table, catalog: task.catalog, uuid: task.uuid }} />
            </span>
            <Badge tone={stateTone(task.state)}>{words(task.state)}</Badge>
          </span>
        }
      >
        <TaskActions task={task} tag={tag} />
      </PageHeading>
      <div className="flex flex-col gap-4">
        <Card title="What becomes of it">
          <div className="flex flex-col gap-1">
            <p>
              <Name>{task.reason.text}</Name>
            </p>
            {task.state === "running" && task.progress ? (
              <Progress
                done={task.progress.groups_done}
                total={task.progress.groups_total}
                label={`${task.progress.phase}, ${count(task.progress.groups_done)} of ${plural(task.progress.groups_total, "group")}`}
              />
            ) : null}
            {task.outcome && task.state !== "running" ? (
              <p className={task.state === "failed" ? "font-medium text-bad" : "font-medium"}>
                <Name>{task.outcome.reason.text}</Name>
              </p>
            ) : null}
            {task.state === "in_doubt" ? (
              <p>Whether its attempt committed is unknown: the table is asked next.</p>
            ) : null}
            {task.cancel_requested ? <p>It is to be cancelled.</p> : null}
            {halt && isHeld ? (
              <p className="text-bad">
                <Name>{haltWords(halt)}</Name>
              </p>
            ) : null}
            {waits.map((wait) => (
              <p key={wait.reason.code + wait.reason.text}>
                Waits: <Name>{wait.reason.text}</Name>
                {wait.until === null ? null : (
                  <>
                    , until <Time at={wait.until} />
                  </>
                )}
              </p>
            ))}
            {start ? (
              <p>
                Starts:{" "}
                {start.at === null ? (
                  "it is not known when"
                ) : (
                  <>
                    about <Time at={start.at} />, by an estimate
                  </>
                )}
                {start.at === null && start.soonest_at !== null ? (
                  <>
                    , not before <Time at={start.soonest_at} />
                  </>
                ) : null}
                {waits.some((wait) => wait.reason.text === start.reason.text) ? (
                  "."
                ) : (
                  <>
                    : <Name>{start.reason.text}</Name>
                  </>
                )}
              </p>
            ) : null}
          </div>
        </Card>
        <Outcome document={document} />
        <Card title="What its plan said">
          <PredictionView prediction={task.prediction} />
        </Card>
        <Card title="Attempts">
          {attempts.length === 0 ? (
            <p className="text-soft">It was not tried yet.</p>
          ) : (
            <ol className="flex flex-col gap-2 text-sm">
              {attempts.map((one) => (
                <li key={one.attempt} className="border-t border-line pt-2 first:border-0 first:pt-0">
                  <div className="flex flex-wrap items-center gap-2">
                    <span className="font-medium">Attempt {one.attempt}</span>
                    <Badge tone={stateTone(one.state)}>{words(one.state)}</Badge>
                    <span>
                      by <Name>{one.optimizer_id}</Name>
                    </span>
                    {optimizerOf(one.optimizer_id)}
                    <span className="text-soft">
                      <Time at={one.started_at} />
                      {one.ended_at === null ? "" : `, ${duration(one.ended_at - one.started_at)}`}
                    </span>
                  </div>
                  {one.result && "detail" in one.result ? (
                    <p>
                      <Name>{one.result.detail}</Name>
                    </p>
                  ) : null}
                  {one.cause ? <p className="text-soft">Cause: {words(one.cause)}</p> : null}
                </li>
              ))}
            </ol>
          )}
        </Card>
        <TaskLog task={task} attempts={attempts} />
        <Card title="History">
          <ol className="flex flex-col gap-1 text-sm">
            {history.map((entry) => (
              <li key={entry.version} className="flex flex-wrap items-baseline gap-2">
                <span className="text-soft">
                  <Time at={entry.at} />
                </span>
                <Badge tone={stateTone(entry.state)}>{words(entry.state)}</Badge>
                <Name>{entry.reason.text}</Name>
              </li>
            ))}
          </ol>
        </Card>
        <Card title="About this task">
          <Facts
            items={[
              ["Id", <code key="id">{task.task_id}</code>],
              [
                "Plan",
                <PlanLink key="plan" id={task.plan_id}>
                  {task.plan_id}
                </PlanLink>,
              ],
              ["Resource group", <Name key="group">{task.resource_group}</Name>],
              ["Created", <Time key="created" at={task.created_at} />],
              ["Tries", `${task.attempt} of ${task.attempts_max}`],
            ]}
          />
        </Card>
      </div>
    </>
  );
}

/** What it changes of its table, predicted beside measured, and what that costs. */
function Outcome({ document: { task, attempts, measured } }: { document: queries.TaskDocument }) {
  const ref = { uuid: task.uuid, catalog: task.catalog };
  const isOver = task.state === "succeeded";
  const snapshots = useQuery({ ...queries.snapshots(ref), enabled: isOver });
  const series = useQuery({ ...queries.series(ref), enabled: isOver });
  const endedAt = attempts.at(-1)?.ended_at ?? null;
  const seen = seenAround(series.data?.items ?? [], task.created_at, endedAt);
  const costs = measured && task.prediction.kind === "rewrite_data_files" ? compared(task.prediction, measured) : [];
  const commits = committed(snapshots.data?.items ?? [], task.task_id);
  const found = changes(task.prediction, commits, seen, isOver && costs.length > 0 ? measured : null);
  if (found.length === 0 && costs.length === 0) return null;
  return (
    <Card title="Before and after">
      <div className="flex flex-col gap-3">
        <p className="font-medium">
          <Name>{changeWords(found, isOver ? measured : null)}</Name>
        </p>
        {found.length > 0 ? <ChangesTable changes={found} /> : null}
        {seen.before && seen.after ? (
          <p className="text-sm text-soft">
            The share of small files is that of the looks of <Time at={seen.before.at} /> and of{" "}
            <Time at={seen.after.at} />; what others committed between them is in it.
          </p>
        ) : null}
        {costs.length > 0 ? (
          <table className="self-start text-sm">
            <caption className="pb-1 text-left font-medium">What the work took</caption>
            <thead>
              <tr className="text-soft">
                <th scope="col">
                  <span className="sr-only">What</span>
                </th>
                <th scope="col" className="px-3 text-right font-medium">
                  Predicted
                </th>
                <th scope="col" className="px-3 text-right font-medium">
                  Measured
                </th>
              </tr>
            </thead>
            <tbody>
              {costs.map((row) => (
                <tr key={row.name}>
                  <th scope="row" className="pr-3 text-left font-normal">
                    {row.name}
                  </th>
                  <td className="px-3 text-right tabular-nums">{row.predicted}</td>
                  <td className="px-3 text-right font-semibold tabular-nums">{row.measured}</td>
                </tr>
              ))}
            </tbody>
          </table>
        ) : null}
      </div>
    </Card>
  );
}

type Ask = "cancel" | "retry" | "expedite" | "undo";

const ASKS: Record<Ask, { name: string; said: string; permission: "operate" | "undo"; states: string[] }> = {
  expedite: {
    name: "Start it next",
    said: "It goes before everything that waits.",
    permission: "operate",
    states: ["queued"],
  },
  cancel: {
    name: "Cancel",
    said: "It ends, and what it has committed stays. Its table is planned again at the next look.",
    permission: "operate",
    states: ["queued", "running", "in_doubt"],
  },
  retry: { name: "Try it again", said: "It is queued again.", permission: "operate", states: ["failed", "cancelled"] },
  undo: {
    name: "Undo",
    said: "A plan is made that puts the table back to where it was before. Look at it, then let it go.",
    permission: "undo",
    states: ["succeeded"],
  },
};

/** What changed no row, or was an undo, is never undone: a table is set back to an earlier snapshot instead. */
const NEVER_UNDONE: readonly string[] = [
  "rewrite_data_files",
  "rewrite_manifests",
  "remove_dangling_deletes",
  "rewrite_position_delete_files",
  "compute_statistics",
  "undo_expire_snapshots",
  "undo_expire_data",
  "restore_files",
];

function TaskActions({ task, tag }: { task: queries.Task; tag: string | null }) {
  const me = useQuery(queries.me);
  const isOver = task.state === "succeeded";
  const snapshots = useQuery({
    ...queries.snapshots({ uuid: task.uuid, catalog: task.catalog }),
    enabled: isOver && NEVER_UNDONE.includes(task.action.kind),
  });
  const [commit] = (isOver ? (snapshots.data?.items ?? []) : [])
    .filter((each) => each.task_id === task.task_id)
    .sort((one, other) => one.sequence_number - other.sequence_number);
  const [asked, setAsked] = useState<Ask | null>(null);
  const offered = (Object.keys(ASKS) as Ask[]).filter(
    (one) =>
      ASKS[one].states.includes(task.state) &&
      me.data?.permissions.includes(ASKS[one].permission) &&
      !(one === "undo" && NEVER_UNDONE.includes(task.action.kind)),
  );
  return (
    <div className="flex flex-wrap gap-2">
      {offered.map((one) => (
        <Button key={one} look={one === "cancel" ? "danger" : "plain"} onClick={() => setAsked(one)}>
          {ASKS[one].name}…
        </Button>
      ))}
      {commit?.is_ancestor && commit.parent_id !== null ? (
        <RollBack table={{ name: task.table, catalog: task.catalog, uuid: task.uuid }} to={commit.parent_id} />
      ) : null}
      {asked ? <Confirm task={task} tag={tag} ask={asked} onClose={() => setAsked(null)} /> : null}
    </div>
  );
}

function Confirm({
  task,
  tag,
  ask,
  onClose,
}: {
  task: queries.Task;
  tag: string | null;
  ask: Ask;
  onClose: () => void;
}) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const path = { task_id: task.task_id };
  const seen = tag === null ? {} : { header: { "if-match": tag } };
  const change = useMutation({
    mutationFn: async (): Promise<string | null> => {
      if (ask === "undo") {
        const plan = await answer(api.POST("/api/v1/tasks/{task_id}/undo", { params: { path } }));
        return plan.plan_id;
      }
      if (ask === "cancel") await answer(api.POST("/api/v1/tasks/{task_id}/cancel", { params: { path, ...seen } }));
      else if (ask === "retry") await answer(api.POST("/api/v1/tasks/{task_id}/retry", { params: { path, ...seen } }));
      else await answer(api.POST("/api/v1/tasks/{task_id}/expedite", { params: { path } }));
      return null;
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["tasks"] }),
    onSuccess: (plan) => {
      void client.invalidateQueries({ queryKey: ["plans"] });
      onClose();
      if (plan !== null) void navigate({ to: "/plans/$planId", params: { planId: plan } });
    },
  });
  return (
    <Dialog title={`${ASKS[ask].name}: ${words(task.action.kind)}`} onClose={onClose}>
      <div className="flex flex-col gap-3">
        <p>
          <Name className="font-medium">{task.table}</Name>
        </p>
        <p>{ASKS[ask].said}</p>
        {change.error ? <Trouble error={change.error} /> : null}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Not now</Button>
          <Button
            look={ask === "cancel" ? "danger" : "main"}
            disabled={change.isPending}
            onClick={() => change.mutate()}
          >
            {ASKS[ask].name}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
