// What an attempt at a task logged last: lines as they came, which are text whatever they are made of.

import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import * as queries from "../api/queries";
import { instant, plural, visible } from "../lib/format";
import { Card, classes, Loaded, Name } from "./ui";

const SERVER = ["server", "server-files"];
const LOUD = ["warning", "error", "critical"];

export function TaskLog({ task, attempts }: { task: queries.Task; attempts: queries.TaskDocument["attempts"] }) {
  const [chosen, setChosen] = useState<number | null>(null);
  const select = useId();
  const attempt = attempts.find((one) => one.attempt === chosen) ?? attempts.at(-1);
  if (!attempt) return null;
  return (
    <Card
      title="Logs"
      actions={
        attempts.length > 1 ? (
          <span className="text-sm">
            <label htmlFor={select}>Of attempt </label>
            <select
              id={select}
              className="rounded-md border border-soft bg-card px-2 py-1"
              value={attempt.attempt}
              onChange={(event) => setChosen(Number(event.target.value))}
            >
              {attempts.map((one) => (
                <option key={one.attempt}>{one.attempt}</option>
              ))}
            </select>
          </span>
        ) : null
      }
    >
      <Lines key={attempt.attempt} task={task} attempt={attempt} />
    </Card>
  );
}

function Lines({ task, attempt }: { task: queries.Task; attempt: queries.TaskDocument["attempts"][number] }) {
  const log = useQuery(queries.taskLog(task.task_id, attempt.attempt, attempt.state === "running"));
  return (
    <Loaded query={log} what="the log">
      {({ lines, left_out }) => (
        <div className="flex flex-col gap-2 text-sm">
          {left_out > 0 ? (
            <p>
              {plural(left_out, "earlier line")} {left_out === 1 ? "was" : "were"} left out.
            </p>
          ) : null}
          {lines.length > 0 ? (
            <section
              aria-label={`What attempt ${attempt.attempt} logged`}
              // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keys
              tabIndex={0}
              className="max-h-96 overflow-auto rounded-md border border-line p-2"
            >
              <ol className="font-mono text-xs">
                {numbered(lines, left_out).map((line) => (
                  <li key={line.number} className="flex gap-2 whitespace-pre">
                    <span className="text-soft">{instant(line.at)}</span>
                    <span className={classes("w-16 shrink-0", LOUD.includes(line.level) && "font-semibold text-bad")}>
                      {line.level}
                    </span>
                    <span dir="ltr">{visible(line.text)}</span>
                  </li>
                ))}
              </ol>
            </section>
          ) : (
            <p className="text-soft">No lines of attempt {attempt.attempt} are kept here.</p>
          )}
          <More optimizer={attempt.optimizer_id} />
        </div>
      )}
    </Loaded>
  );
}

/** Lines with their numbers in the log, which stay when newer ones come and older ones go. */
function numbered<T>(lines: readonly T[], before: number): (T & { number: number })[] {
  return lines.map((line, place) => ({ ...line, number: before + place + 1 }));
}

/** Where the whole log is. */
function More({ optimizer }: { optimizer: string }) {
  const status = useQuery(queries.status);
  const hello = status.data?.optimizers.find((one) => one.hello.optimizer_id === optimizer)?.hello;
  return (
    <p className="text-soft">
      {SERVER.includes(optimizer) ? "The server" : <Name>{optimizer}</Name>} has the whole log.{" "}
      {hello?.spark_ui_url ? "What Spark logs is in its UI. " : null}
      {hello?.application_id.startsWith("application_") ? (
        <>
          On YARN: <code>yarn logs -applicationId {visible(hello.application_id)}</code>
        </>
      ) : null}
    </p>
  );
}
