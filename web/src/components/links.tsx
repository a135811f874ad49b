// Ways from one thing to another.

import { Link } from "@tanstack/react-router";
import { short, visible } from "../lib/format";
import { Name } from "./ui";

export function TableLink({
  table,
  tab,
}: {
  table: { name: string; uuid: string; catalog: string };
  tab?: "health" | "layout" | "files" | "snapshots" | "storage" | "tasks" | "policy" | "why";
}) {
  return (
    <Link
      to="/tables/$uuid"
      params={{ uuid: table.uuid }}
      search={{ catalog: table.catalog, tab }}
      className="text-accent hover:underline"
    >
      <span className="line-clamp-3" title={visible(table.name.slice(0, 500))}>
        <Name>{table.name}</Name>
      </span>
    </Link>
  );
}

export function TaskLink({ id, whole = false }: { id: string; whole?: boolean }) {
  return (
    <Link to="/tasks/$taskId" params={{ taskId: id }} className="text-accent hover:underline" title={id}>
      <code>{whole ? id : short(id)}</code>
      <span className="sr-only"> (task)</span>
    </Link>
  );
}

export function PlanLink({ id, children }: { id: string; children: string }) {
  return (
    <Link to="/plans/$planId" params={{ planId: id }} className="text-accent hover:underline">
      {children}
    </Link>
  );
}

/** What Spark calls the application of an optimizer; a way to Spark's UI where that is on. */
export function SparkApplication({ hello }: { hello: { application_id: string; spark_ui_url: string | null } }) {
  if (hello.spark_ui_url === null) {
    return hello.application_id === "" ? null : <Name>{hello.application_id}</Name>;
  }
  return (
    <a href={hello.spark_ui_url} target="_blank" rel="noreferrer" className="text-accent hover:underline">
      Spark UI of <Name>{hello.application_id}</Name>
    </a>
  );
}

/** Parts of a page, each with an address. */
export function Tabs<T extends string>({
  label,
  tabs,
  current,
  nameOf,
  linkOf,
}: {
  label: string;
  tabs: readonly T[];
  current: T;
  nameOf: (tab: T) => string;
  linkOf: (tab: T, className: string, isCurrent: boolean) => React.ReactNode;
}) {
  return (
    <nav aria-label={label} className="relative mb-4 overflow-x-auto border-b border-line">
      <ul className="flex gap-1">
        {tabs.map((tab) => (
          <li key={tab}>
            {linkOf(
              tab,
              `block border-b-2 px-3 py-1.5 whitespace-nowrap hover:bg-track ${tab === current ? "border-accent font-semibold" : "border-transparent"}`,
              tab === current,
            ) ?? nameOf(tab)}
          </li>
        ))}
      </ul>
    </nav>
  );
}
