// How the installation is, for those who run it.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { answer, api, type Schemas } from "../api/client";
import * as queries from "../api/queries";
import { Cluster } from "../components/cluster";
import { type Column, DataTable } from "../components/data-table";
import { SparkApplication, Tabs } from "../components/links";
import { Badge, Button, Card, Empty, Loaded, Name, PageHeading, Time, Trouble } from "../components/ui";
import { readsEverything } from "../lib/cluster";
import { count, plural } from "../lib/format";
import { useNow } from "../lib/now";
import { ADMIN_TABS } from "../lib/search";
import { useTitle } from "../lib/title";
import { Catalogs } from "./catalogs";
import { People } from "./people";
import { Quarantine } from "./quarantine";

const administrationRoute = getRouteApi("/administration");

const AWAY_AFTER_MS = 30_000;

type Tab = (typeof ADMIN_TABS)[number];

const NAMES: Record<Tab, string> = {
  system: "System",
  servers: "Servers",
  optimizers: "Optimizers",
  quarantine: "Quarantine",
  notifications: "Notifications",
  audit: "Audit",
  people: "People and tokens",
};

/** What each part needs; without, its tab is not offered. */
const NEEDS: Partial<Record<Tab, string>> = { audit: "audit", people: "administer" };

export function AdministrationPage() {
  useTitle("Administration");
  const { tab = "system" } = administrationRoute.useSearch();
  const me = useQuery(queries.me);
  const tabs = ADMIN_TABS.filter((each) => {
    if (each === "servers") return me.data !== undefined && readsEverything(me.data.grants);
    const needed = NEEDS[each];
    return needed === undefined || me.data?.permissions.some((one) => one === needed);
  });
  const shown = tabs.includes(tab) ? tab : "system";
  return (
    <>
      <PageHeading title="Administration">
        <Link to="/reference" className="underline">
          API
        </Link>
      </PageHeading>
      <Tabs
        label="Parts of the administration"
        tabs={tabs}
        current={shown}
        nameOf={(each) => NAMES[each]}
        linkOf={(each, className, isCurrent) => (
          <Link
            to="/administration"
            search={{ tab: each }}
            className={className}
            aria-current={isCurrent ? "page" : undefined}
          >
            {NAMES[each]}
          </Link>
        )}
      />
      {shown === "system" ? <System /> : null}
      {shown === "servers" ? <Cluster /> : null}
      {shown === "optimizers" ? <Optimizers /> : null}
      {shown === "quarantine" ? <Quarantine /> : null}
      {shown === "notifications" ? <Notifications /> : null}
      {shown === "audit" ? <Audit /> : null}
      {shown === "people" ? <People /> : null}
    </>
  );
}

function System() {
  const status = useQuery(queries.status);
  const readiness = useQuery(queries.readiness);
  return (
    <div className="flex flex-col gap-4">
      <Loaded query={readiness} what="the parts">
        {({ parts }) => (
          <Card title="Parts">
            <ul className="flex flex-col gap-1 text-sm">
              {parts.map((part) => (
                <li key={part.name} className="flex flex-wrap items-baseline gap-2">
                  <Badge tone={part.is_well ? "good" : part.is_required ? "bad" : "fair"}>
                    {part.is_well ? "well" : "not well"}
                  </Badge>
                  <Name className="font-medium">{part.name}</Name>
                  <Name>{part.detail}</Name>
                </li>
              ))}
            </ul>
          </Card>
        )}
      </Loaded>
      <Loaded query={status} what="the status">
        {(value) => (
          <>
            <Catalogs catalogs={value.catalogs} />
            <Card title="What the server is doing">
              {value.doing.length === 0 ? (
                <p className="text-sm text-soft">It looks at tables. No commit and no removal of its own runs.</p>
              ) : null}
              <ul className="flex flex-col gap-1 text-sm">
                {value.doing.map((each) => (
                  <li key={each.thread} className="flex flex-wrap items-baseline gap-2">
                    {each.is_silent ? <Badge tone="bad">silent</Badge> : null}
                    <Name className="font-medium">{each.thread}</Name>
                    <Name>{each.step}</Name>
                    <span className="text-soft">
                      since <Time at={each.since} relative />
                    </span>
                  </li>
                ))}
              </ul>
            </Card>
          </>
        )}
      </Loaded>
    </div>
  );
}

function Optimizers() {
  const status = useQuery(queries.status);
  const now = useNow();
  return (
    <Loaded query={status} what="optimizers">
      {({ optimizers, submitters }) =>
        optimizers.length === 0 && submitters.length === 0 ? (
          <Empty>
            No optimizer has introduced itself yet. <code>icewright optimizer</code> starts one; Spark needs some
            seconds to come up. Tables are observed and planned without it.
          </Empty>
        ) : (
          <ul className="flex flex-col gap-2 text-sm">
            {optimizers.map(({ hello, seen_at: at }) => {
              const isAway = now - at > AWAY_AFTER_MS;
              return (
                <li key={hello.optimizer_id} className="flex flex-wrap items-baseline gap-2">
                  <Badge tone={isAway ? "bad" : "good"}>{isAway ? "away" : "ready"}</Badge>
                  <Name className="font-medium">{hello.optimizer_id}</Name>
                  <span>
                    {plural(hello.slots, "slot")} · Spark {hello.spark_version} · Iceberg {hello.iceberg_version} ·
                    group <Name>{hello.resource_group}</Name>
                  </span>
                  <SparkApplication hello={hello} />
                  <span className="text-soft">
                    heard of <Time at={at} relative />
                  </span>
                </li>
              );
            })}
            {submitters.map(({ submitter, asked_at: at }) => (
              <li key={submitter.submitting.submitter_id} className="flex flex-wrap items-baseline gap-2">
                <Badge>submitter</Badge>
                <Name className="font-medium">{`${submitter.submitting.submitter_id} on ${submitter.submitting.host}`}</Name>
                <span>
                  {count(submitter.submitting.applications)} of at most{" "}
                  {plural(submitter.submitting.applications_max, "application")} · group{" "}
                  <Name>{submitter.resource_group}</Name>
                </span>
                <span className="text-soft">
                  asked <Time at={at} relative />
                </span>
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  );
}

function Notifications() {
  const receivers = useQuery(queries.receivers);
  const letters = useQuery(queries.deadLetters);
  const me = useQuery(queries.me);
  const client = useQueryClient();
  const mayAdminister = me.data?.permissions.includes("administer") ?? false;
  const trial = useMutation({
    mutationFn: (name: string) =>
      answer(api.POST("/api/v1/notifications/receivers/{name}/test", { params: { path: { name } } })),
  });
  const again = useMutation({
    mutationFn: (id: string) =>
      answer(
        api.POST("/api/v1/notifications/dead-letters/{message_id}/retry", { params: { path: { message_id: id } } }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: ["dead-letters"] }),
  });
  return (
    <div className="flex flex-col gap-4">
      <Loaded query={receivers} what="receivers">
        {({ items }) =>
          items.length === 0 ? (
            <Empty>No receiver is configured: receivers are part of the server's configuration.</Empty>
          ) : (
            <Card title="Receivers">
              <ul className="flex flex-col gap-2 text-sm">
                {items.map((each) => (
                  <li key={each.name} className="flex flex-wrap items-center gap-2">
                    <Badge tone={each.trouble ? "bad" : "good"}>{each.trouble ? "trouble" : "well"}</Badge>
                    <Name className="font-medium">{each.name}</Name>
                    <span>
                      {each.kind} · {count(each.sent)} sent · {count(each.waiting)} waiting · {count(each.dead_letters)}{" "}
                      did not arrive
                    </span>
                    {mayAdminister ? (
                      <Button disabled={trial.isPending} onClick={() => trial.mutate(each.name)}>
                        Send a test
                      </Button>
                    ) : null}
                    {trial.data?.receiver === each.name ? (
                      <span role="status">
                        {trial.data.has_arrived ? "It has arrived." : `It has not: ${trial.data.problem}`}
                      </span>
                    ) : null}
                    {each.trouble ? (
                      <p className="w-full text-bad">
                        <Name>{each.trouble}</Name>
                      </p>
                    ) : null}
                  </li>
                ))}
              </ul>
              {trial.error ? <Trouble error={trial.error} /> : null}
            </Card>
          )
        }
      </Loaded>
      <Loaded query={letters} what="messages that did not arrive">
        {({ items }) =>
          items.length === 0 ? null : (
            <Card title="Messages that did not arrive">
              <ul className="flex flex-col gap-2 text-sm">
                {items.map((each) => (
                  <li key={each.message_id}>
                    <div className="flex flex-wrap items-center gap-2">
                      <Name className="font-medium">{each.title}</Name>
                      <Time at={each.given_up_at} relative />
                      {mayAdminister ? (
                        <Button disabled={again.isPending} onClick={() => again.mutate(each.message_id)}>
                          Send it again
                        </Button>
                      ) : null}
                    </div>
                    <p>
                      <Name>{`${each.receiver}, ${plural(each.attempts, "attempt")}: ${each.problem}`}</Name>
                    </p>
                  </li>
                ))}
              </ul>
              {again.error ? <Trouble error={again.error} /> : null}
            </Card>
          )
        }
      </Loaded>
    </div>
  );
}

const AUDIT: Column<Schemas["AuditEntry"]>[] = [
  { id: "number", heading: "Number", numeric: true, by: (row) => row.number, cell: (row) => row.number },
  { id: "at", heading: "When", by: (row) => row.at, cell: (row) => <Time at={row.at} /> },
  { id: "who", heading: "Who", by: (row) => row.principal, cell: (row) => <Name>{row.principal}</Name> },
  { id: "action", heading: "What", by: (row) => row.action, cell: (row) => <Name>{row.action}</Name> },
  {
    id: "resource",
    heading: "Of what",
    from: "sm",
    by: (row) => row.resource,
    cell: (row) => <Name>{row.resource}</Name>,
  },
  {
    id: "detail",
    heading: "Detail",
    from: "lg",
    cell: (row) => (
      <Name>
        {Object.entries(row.detail)
          .map(([key, value]) => `${key}: ${value}`)
          .join(", ")}
      </Name>
    ),
  },
];

function Audit() {
  const list = useQuery(queries.audit);
  return (
    <Loaded query={list} what="the audit">
      {({ items, next_cursor: more }) => (
        <>
          <DataTable label="Audit" rows={items} columns={AUDIT} keyOf={(row) => String(row.number)} />
          {more ? (
            <p className="mt-2 text-sm text-soft">
              {plural(items.length, "entry").replace("entrys", "entries")}; <code>icewright audit list</code> has all.
            </p>
          ) : null}
        </>
      )}
    </Loaded>
  );
}
