// Who is logged in, and the tokens of programs: making one, and revoking it.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Schemas } from "../api/client";
import * as queries from "../api/queries";
import { type Column, DataTable } from "../components/data-table";
import {
  Badge,
  Button,
  Copy,
  Dialog,
  Empty,
  Field,
  Input,
  Loaded,
  Name,
  Select,
  Time,
  Trouble,
} from "../components/ui";
import { words } from "../lib/format";

const DAY_MS = 86_400_000;
const LIFETIMES = [1, 7, 30, 90, 365] as const;
const ROLES = {
  viewer: "sees tables, plans and tasks",
  operator: "has tables looked at, plans, queues what takes nothing away, cancels, undoes",
  "policy-admin": "also changes policies, removes within budgets, reads the audit",
  approver: "approves and refuses plans, undoes, reads the audit",
  "platform-admin": "makes tokens, ends sessions, reads the audit; everywhere alone",
  reporter: "reports commits of writers",
  optimizer: "carries out tasks; everywhere alone",
} as const;
type Role = keyof typeof ROLES;

function grants(of: { role: string; scope: { catalog: string; namespace: string[] } }[]): string {
  return of
    .map(
      ({ role, scope }) =>
        `${words(role)} on ${[scope.catalog, ...scope.namespace].filter(Boolean).join(".") || "everything"}`,
    )
    .join(", ");
}

export function People() {
  const sessions = useQuery(queries.sessions);
  const tokens = useQuery(queries.tokens);
  const client = useQueryClient();
  const end = useMutation({
    mutationFn: (id: string) =>
      answer(api.POST("/api/v1/sessions/{session_id}/end", { params: { path: { session_id: id } } })),
    onSettled: () => client.invalidateQueries({ queryKey: ["sessions"] }),
  });
  const [revoking, setRevoking] = useState<string | null>(null);
  const session: Column<Schemas["SessionView"]>[] = [
    { id: "name", heading: "Who", by: (row) => row.name, cell: (row) => <Name>{row.shown || row.name}</Name> },
    { id: "grants", heading: "May", from: "md", cell: (row) => <Name>{grants(row.grants)}</Name> },
    { id: "by", heading: "By", from: "sm", by: (row) => row.logged_in_by, cell: (row) => row.logged_in_by },
    {
      id: "used",
      heading: "Last used",
      by: (row) => row.last_used_at,
      cell: (row) => <Time at={row.last_used_at} relative />,
    },
    {
      id: "end",
      heading: "End",
      cell: (row) => (
        <Button disabled={end.isPending} onClick={() => end.mutate(row.session_id)}>
          End it<span className="sr-only"> for {row.shown || row.name}</span>
        </Button>
      ),
    },
  ];
  const token: Column<Schemas["TokenRecord"]>[] = [
    { id: "name", heading: "Token", by: (row) => row.name, cell: (row) => <Name>{row.name}</Name> },
    { id: "grants", heading: "May", from: "md", cell: (row) => <Name>{grants(row.grants)}</Name> },
    {
      id: "used",
      heading: "Last used",
      from: "sm",
      by: (row) => row.last_used_at,
      cell: (row) => <Time at={row.last_used_at} relative />,
    },
    { id: "ends", heading: "Ends", by: (row) => row.expires_at, cell: (row) => <Time at={row.expires_at} /> },
    {
      id: "revoke",
      heading: "Revoke",
      cell: (row) =>
        row.revoked_at === null ? (
          <Button look="danger" onClick={() => setRevoking(row.name)}>
            Revoke…<span className="sr-only"> {row.name}</span>
          </Button>
        ) : (
          <Badge>revoked</Badge>
        ),
    },
  ];
  const [isMaking, setMaking] = useState(false);
  return (
    <div className="flex flex-col gap-6">
      <section aria-label="Sessions">
        <h2 className="mb-2 text-base font-semibold">Sessions</h2>
        <Loaded query={sessions} what="sessions">
          {({ items }) => <DataTable label="Sessions" rows={items} columns={session} keyOf={(row) => row.session_id} />}
        </Loaded>
        {end.error ? <Trouble error={end.error} /> : null}
      </section>
      <section aria-label="Tokens">
        <div className="mb-2 flex flex-wrap items-center gap-3">
          <h2 className="text-base font-semibold">Tokens</h2>
          <Button onClick={() => setMaking(true)}>Make a token…</Button>
        </div>
        <Loaded query={tokens} what="tokens">
          {({ items }) =>
            items.length === 0 ? (
              <Empty>
                No tokens but the server's own. Programs come in with a token; make one, or use{" "}
                <code>icewright token create</code>.
              </Empty>
            ) : (
              <DataTable label="Tokens" rows={items} columns={token} keyOf={(row) => row.name} />
            )
          }
        </Loaded>
        {isMaking ? <MakeToken onClose={() => setMaking(false)} /> : null}
        {revoking === null ? null : <Revoke name={revoking} onClose={() => setRevoking(null)} />}
      </section>
    </div>
  );
}

function Revoke({ name, onClose }: { name: string; onClose: () => void }) {
  const client = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/tokens/{name}/revoke", { params: { path: { name } } })),
    onSettled: () => client.invalidateQueries({ queryKey: ["tokens"] }),
    onSuccess: onClose,
  });
  return (
    <Dialog title="Revoke this token" onClose={onClose}>
      <div className="flex flex-col gap-3">
        <p>
          Programs that use <Name className="font-medium">{name}</Name> are refused from now on, on all servers. That
          cannot be taken back.
        </p>
        {revoke.error ? <Trouble error={revoke.error} /> : null}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Not now</Button>
          <Button look="danger" disabled={revoke.isPending} onClick={() => revoke.mutate()}>
            Revoke
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

function MakeToken({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [scope, setScope] = useState("");
  const [days, setDays] = useState<number>(90);
  const make = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/tokens", {
          body: {
            name,
            roles: [role],
            scopes: scope.split(",").map((each) => each.trim()),
            lifetime_ms: days * DAY_MS,
          },
        }),
      ),
    gcTime: 0, // the secret is kept nowhere but on the screen
    onSettled: () => client.invalidateQueries({ queryKey: ["tokens"] }),
  });
  return (
    <Dialog title="Make a token" onClose={onClose}>
      {make.data ? (
        <Given token={make.data.token} name={make.data.record.name} onClose={onClose} />
      ) : (
        <form
          className="flex flex-col gap-3"
          onSubmit={(event) => {
            event.preventDefault();
            make.mutate();
          }}
        >
          <Field label="Name: a-z, 0-9 and . _ -">
            {(id) => (
              <Input
                id={id}
                required
                pattern="[a-z0-9][a-z0-9._\-]{0,63}"
                value={name}
                onChange={(event) => setName(event.target.value)}
              />
            )}
          </Field>
          <Field label="Role">
            {(id) => (
              <Select id={id} value={role} onChange={(event) => setRole(event.target.value as Role)}>
                {Object.entries(ROLES).map(([each, said]) => (
                  <option key={each} value={each}>
                    {each}: {said}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          <Field label="Where: a catalog, catalog.namespace, or * for everything; several with commas">
            {(id) => <Input id={id} required value={scope} onChange={(event) => setScope(event.target.value)} />}
          </Field>
          <Field label="Valid for">
            {(id) => (
              <Select id={id} value={days} onChange={(event) => setDays(Number(event.target.value))}>
                {LIFETIMES.map((each) => (
                  <option key={each} value={each}>
                    {each === 1 ? "1 day" : `${each} days`}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          {make.error ? <Trouble error={make.error} /> : null}
          <div className="flex justify-end gap-2">
            <Button onClick={onClose}>Not now</Button>
            <Button look="main" type="submit" disabled={make.isPending || !name || !scope.trim()}>
              Make it
            </Button>
          </div>
        </form>
      )}
    </Dialog>
  );
}

function Given({ token, name, onClose }: { token: string; name: string; onClose: () => void }) {
  return (
    <div className="flex flex-col gap-3">
      <p role="status">
        <Name className="font-medium">{name}</Name> is made. This is the only time that it is shown: keep it where the
        program finds it, and nowhere else.
      </p>
      <code className="rounded-md border border-line p-2 [overflow-wrap:anywhere]">{token}</code>
      <div className="flex justify-end gap-2">
        <Copy text={token} />
        <Button look="main" onClick={onClose}>
          I have kept it
        </Button>
      </div>
    </div>
  );
}
