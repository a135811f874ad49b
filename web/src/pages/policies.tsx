// Which rules there are, what they were, and what others would change before they are applied.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { answer, api, type Schemas } from "../api/client";
import * as queries from "../api/queries";
import { type Column, DataTable } from "../components/data-table";
import { Tabs } from "../components/links";
import {
  Badge,
  Button,
  Card,
  Empty,
  Facts,
  Field,
  Input,
  Loaded,
  Name,
  PageHeading,
  TextArea,
  Time,
  Trouble,
} from "../components/ui";
import { count, plural } from "../lib/format";
import { POLICY_TABS } from "../lib/search";
import { useTitle } from "../lib/title";

const policiesRoute = getRouteApi("/policies");

type Rule = Schemas["NamedRule"];
type Revision = Schemas["PolicyRevision"];
type Difference = Schemas["PolicyDifference"];

const NAMES = { rules: "Rules", revisions: "Revisions", edit: "Edit" };

export function PoliciesPage() {
  useTitle("Policies");
  const { tab = "rules", revision } = policiesRoute.useSearch();
  const me = useQuery(queries.me);
  const now = useQuery(queries.policies);
  const mayGovern = me.data?.permissions.includes("govern") ?? false;
  return (
    <>
      <PageHeading title="Policies" />
      <Tabs
        label="Parts of the policies"
        tabs={POLICY_TABS}
        current={tab}
        nameOf={(each) => NAMES[each]}
        linkOf={(each, className, isCurrent) => (
          <Link
            to="/policies"
            search={{ tab: each }}
            className={className}
            aria-current={isCurrent ? "page" : undefined}
          >
            {NAMES[each]}
          </Link>
        )}
      />
      <Loaded query={now} what="the policies">
        {({ value }) =>
          tab === "rules" ? (
            <Rules of={value} />
          ) : tab === "revisions" ? (
            <Revisions shown={revision} />
          ) : (
            <Editor key={value.number} of={value} mayGovern={mayGovern} />
          )
        }
      </Loaded>
    </>
  );
}

function matchWords(rule: Rule): string {
  const parts = [rule.match.tables.join(", ")];
  if (rule.match.owner) parts.push(`owner ${rule.match.owner}`);
  for (const [key, value] of Object.entries(rule.match.properties ?? {})) parts.push(`${key} = ${value}`);
  return parts.join("; ");
}

const COLUMNS: Column<Rule>[] = [
  {
    id: "name",
    heading: "Rule",
    by: (row) => row.name,
    cell: (row) => (
      <>
        <Name className="font-medium">{row.name}</Name>
        {row.note ? (
          <span className="block text-soft">
            <Name>{row.note}</Name>
          </span>
        ) : null}
      </>
    ),
  },
  { id: "tables", heading: "For", by: matchWords, cell: (row) => <Name>{matchWords(row)}</Name> },
  {
    id: "settings",
    heading: "Settings",
    cell: (row) => (
      <ul>
        {Object.entries(row.settings).map(([key, value]) => (
          <li key={key}>
            <code className="[overflow-wrap:anywhere]">
              <Name>{`${key} = ${value}`}</Name>
            </code>
          </li>
        ))}
      </ul>
    ),
  },
  {
    id: "priority",
    heading: "Priority",
    numeric: true,
    from: "sm",
    by: (row) => row.priority ?? 0,
    cell: (row) => count(row.priority ?? 0),
  },
  {
    id: "enforce",
    heading: "Over owners",
    from: "md",
    by: (row) => row.enforce ?? "false",
    cell: (row) =>
      row.enforce === "false" || row.enforce === undefined ? (
        ""
      ) : (
        <Badge tone="fair">{row.enforce === "true" ? "enforced" : row.enforce}</Badge>
      ),
  },
];

function Rules({ of }: { of: Revision }) {
  const groups = of.policies.groups ?? [];
  return (
    <div className="flex flex-col gap-4">
      <p className="text-soft">
        {of.number === 0 ? "No revision was applied yet." : `Revision ${of.number}`}
        {of.number === 0 ? null : (
          <>
            , applied <Time at={of.applied_at} relative /> by <Name>{of.applied_by}</Name>
            {of.note ? (
              <>
                : <Name>{of.note}</Name>
              </>
            ) : null}
          </>
        )}{" "}
        Of two rules that set the same for a table, the one of the higher priority wins; a table's page says which did.
      </p>
      {of.policies.rules.length === 0 ? (
        <Empty>No rules. Tables are as their own properties and the defaults say.</Empty>
      ) : (
        <DataTable label="Rules" rows={of.policies.rules} columns={COLUMNS} keyOf={(row) => row.name} />
      )}
      {groups.length > 0 ? (
        <Card title="Resource groups that the policies define">
          <ul className="list-disc pl-5 text-sm">
            {groups.map((group) => (
              <li key={group.name}>
                <Name>{group.name}</Name>
                {group.tasks_max == null ? "" : `, at most ${plural(group.tasks_max, "task")}`}
                {group.cores == null ? "" : `, ${plural(group.cores, "core")}`}
              </li>
            ))}
          </ul>
        </Card>
      ) : null}
    </div>
  );
}

function Revisions({ shown }: { shown: number | undefined }) {
  const list = useQuery(queries.revisions);
  return (
    <div className="flex flex-col gap-4">
      <Loaded query={list} what="revisions">
        {({ items }) =>
          items.length === 0 ? (
            <Empty>No revision was applied yet.</Empty>
          ) : (
            <ul className="flex flex-col gap-1 text-sm">
              {items.map((each) => (
                <li key={each.number} className="flex flex-wrap items-baseline gap-2">
                  <Link
                    to="/policies"
                    search={{ tab: "revisions", revision: each.number }}
                    className="text-accent hover:underline"
                    aria-current={each.number === shown ? "true" : undefined}
                  >
                    Revision {each.number}
                  </Link>
                  <span>{plural(each.rules, "rule")}</span>
                  <span className="text-soft">
                    <Time at={each.applied_at} /> by <Name>{each.applied_by}</Name>
                  </span>
                  <Name>{each.note}</Name>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      {shown === undefined ? null : <OneRevision number={shown} />}
    </div>
  );
}

function OneRevision({ number }: { number: number }) {
  const found = useQuery(queries.revision(number));
  return (
    <Loaded query={found} what={`revision ${number}`}>
      {(value) => <Rules of={value} />}
    </Loaded>
  );
}

function Editor({ of, mayGovern }: { of: Revision; mayGovern: boolean }) {
  const client = useQueryClient();
  const me = useQuery(queries.me);
  const [text, setText] = useState(() => JSON.stringify(of.policies, null, 2));
  const [note, setNote] = useState("");
  const [name, setName] = useState("");
  const preview = useMutation({
    mutationFn: async (): Promise<{ difference: Difference; policies: Schemas["Policies"] }> => {
      const policies = JSON.parse(text) as Schemas["Policies"];
      return { policies, difference: await answer(api.POST("/api/v1/policies/preview", { body: policies })) };
    },
  });
  const apply = useMutation({
    mutationFn: ({ difference, policies }: { difference: Difference; policies: Schemas["Policies"] }) =>
      answer(
        api.POST("/api/v1/policies", {
          params: { header: { "if-match": `"${difference.revision}"` } },
          body: { policies, note, applied_by: name || me.data?.shown || me.data?.name || "" },
        }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: ["policies"] }),
  });
  const isReadable = isJson(text);
  return (
    <div className="flex flex-col gap-3">
      <p className="text-soft">
        Rules and resource groups as JSON: what <code>icewright policy export</code> writes as files is made of the
        same. Nothing changes before it is previewed and applied.
      </p>
      <Field label="Policies">
        {(id) => (
          <TextArea
            id={id}
            rows={20}
            spellCheck={false}
            aria-invalid={!isReadable}
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              preview.reset();
            }}
          />
        )}
      </Field>
      {isReadable ? null : <p className="text-bad">This is no JSON yet.</p>}
      <div>
        <Button look="main" disabled={!isReadable || preview.isPending} onClick={() => preview.mutate()}>
          What would it change?
        </Button>
      </div>
      {preview.error ? <Trouble error={preview.error} /> : null}
      {preview.data ? (
        <>
          <DifferenceView difference={preview.data.difference} />
          {mayGovern ? (
            <Card title="Apply it as the next revision">
              <form
                className="flex flex-wrap items-end gap-3"
                onSubmit={(event) => {
                  event.preventDefault();
                  if (preview.data) apply.mutate(preview.data);
                }}
              >
                <Field label="Your name">
                  {(id) => (
                    <Input
                      id={id}
                      placeholder={me.data?.shown || me.data?.name || ""}
                      value={name}
                      onChange={(event) => setName(event.target.value)}
                    />
                  )}
                </Field>
                <Field label="Why">
                  {(id) => <Input id={id} value={note} onChange={(event) => setNote(event.target.value)} />}
                </Field>
                <Button look="main" type="submit" disabled={apply.isPending}>
                  Apply
                </Button>
              </form>
              {apply.error ? <Trouble error={apply.error} /> : null}
            </Card>
          ) : (
            <p className="text-soft">Only who may govern policies can apply it.</p>
          )}
        </>
      ) : null}
    </div>
  );
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function DifferenceView({ difference }: { difference: Difference }) {
  return (
    <Card title="What it would change">
      <div className="flex flex-col gap-2 text-sm">
        {difference.warnings.map((warning) => (
          <p key={warning.code + warning.text} className="text-bad">
            <Name>{warning.text}</Name>
          </p>
        ))}
        <Facts
          items={[
            ["Tables", `${count(difference.tables_changed)} of ${count(difference.tables_known)} change`],
            [
              "Rules",
              difference.rules.length === 0
                ? "none changes"
                : difference.rules.map((rule) => `${rule.name} ${rule.what}`).join(", "),
            ],
          ]}
        />
        <ul className="flex flex-col gap-2">
          {difference.tables.map((table) => (
            <li key={table.table}>
              <Name className="font-medium">{table.table}</Name>
              <ul className="list-disc pl-5">
                {table.changes.map((change) => (
                  <li key={change.key}>
                    <code>{change.key}</code>:{" "}
                    <Name>{`${change.before ?? "not set"} → ${change.after ?? "not set"}`}</Name>{" "}
                    <span className="text-soft">
                      (<Name>{change.after_origin}</Name>)
                    </span>
                  </li>
                ))}
              </ul>
            </li>
          ))}
        </ul>
        {difference.tables.length < difference.tables_changed ? (
          <p className="text-soft">The first {difference.tables.length} tables.</p>
        ) : null}
      </div>
    </Card>
  );
}

export function PolicyOfTable({ test }: { test: Schemas["PolicyTest"] }) {
  const columns: Column<Schemas["TestedSetting"]>[] = [
    {
      id: "key",
      heading: "Setting",
      by: (row) => row.win.key,
      cell: (row) => <code className="[overflow-wrap:anywhere]">{row.win.key}</code>,
    },
    {
      id: "value",
      heading: "Value",
      by: (row) => row.win.value,
      cell: (row) => <Name>{row.win.value ?? "not set"}</Name>,
    },
    { id: "origin", heading: "Who says so", by: (row) => row.win.origin, cell: (row) => <Name>{row.win.origin}</Name> },
    {
      id: "over",
      heading: "Over",
      from: "md",
      cell: (row) => (
        <ul>
          {row.win.over.map((one) => (
            <li key={one.origin + one.value}>
              <Name>{`${one.origin}: ${one.value} (${one.why})`}</Name>
            </li>
          ))}
        </ul>
      ),
    },
  ];
  return (
    <div className="flex flex-col gap-3">
      {test.problems.map((problem) => (
        <p key={problem.key + problem.origin} className="text-bad">
          <Name>{`${problem.key} = ${problem.value} (${problem.origin}): ${problem.problem}`}</Name>
        </p>
      ))}
      <p className="text-sm">
        Resource group <Name className="font-medium">{test.group.win.name}</Name>: <Name>{test.group.win.because}</Name>
      </p>
      <DataTable label="Settings and who says so" rows={test.settings} columns={columns} keyOf={(row) => row.win.key} />
    </div>
  );
}
