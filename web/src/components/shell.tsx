// What stands around every page: where one can go, whether the server is there, who is signed in, what needs somebody.

import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { Link, Outlet, useLocation, useNavigate, useRouter } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { Away, answer, api, SignedOut } from "../api/client";
import * as queries from "../api/queries";
import { count, plural } from "../lib/format";
import { haltWords, troubles } from "../lib/halts";
import { useLive } from "../lib/live";
import { hasProvider, keepPlace, takePlace, useSignedOut } from "../lib/session";
import { applyTheme, THEMES, type Theme, theme } from "../lib/theme";
import { Search } from "./search";
import { Badge, Button, Card, Code, classes, Name, Select, Time, Trouble } from "./ui";

const PAGES = [
  ["/", "Fleet"],
  ["/inbox", "Inbox"],
  ["/tasks", "Tasks"],
  ["/queue", "Queue"],
  ["/benefit", "Benefit"],
  ["/policies", "Policies"],
  ["/administration", "Administration"],
] as const;

export function Shell() {
  const isSignedOut = useSignedOut();
  return isSignedOut ? <LogInPage /> : <Inside />;
}

function Inside() {
  const me = useQuery(queries.me);
  const navigate = useNavigate();
  useEffect(() => {
    if (!me.data) return;
    const place = takePlace();
    if (place) void navigate({ href: place.replace(/^\/ui/, ""), replace: true });
  }, [me.data, navigate]);
  if (me.data) return <Frame />;
  if (me.error && !(me.error instanceof SignedOut))
    return (
      <main className="mx-auto max-w-2xl p-6">
        <h1 className="mb-3 text-xl font-semibold">icewright</h1>
        <Trouble error={me.error} again={() => void me.refetch()} />
      </main>
    );
  return (
    <main className="p-6">
      <h1 className="sr-only">icewright</h1>
      <p role="status">Loading…</p>
    </main>
  );
}

function Frame() {
  const news = useLive();
  const status = useQuery(queries.status);
  const isAway = status.error !== null;
  const path = useLocation({ select: (location) => location.pathname });
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    // Whoever hears pages read hears the new one from its beginning.
    void path;
    if (!isFirst.current) main.current?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [path]);
  return (
    <div className="mx-auto flex min-h-screen max-w-[100rem] flex-col lg:flex-row">
      <button
        type="button"
        className="sr-only focus:not-sr-only focus:absolute focus:z-20 focus:m-2 focus:rounded focus:bg-card focus:p-2"
        onClick={() => main.current?.focus()}
      >
        Skip to the page
      </button>
      <header className="flex flex-wrap items-center gap-x-4 gap-y-2 border-line p-3 max-lg:border-b lg:sticky lg:top-0 lg:h-screen lg:w-56 lg:shrink-0 lg:flex-col lg:flex-nowrap lg:items-stretch lg:border-r lg:p-4">
        <Link to="/" className="flex items-center gap-2 text-lg font-semibold">
          <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width="24" height="24" />
          icewright
        </Link>
        <Search />
        <Navigation />
        <div className="flex flex-wrap items-center gap-2 lg:mt-auto lg:flex-col lg:items-stretch">
          <Who />
          <ThemeChoice />
        </div>
      </header>
      <main
        ref={main}
        id="main"
        tabIndex={-1}
        className={classes("min-w-0 flex-1 p-3 outline-none sm:p-5", isAway && "grayscale")}
      >
        <Banner status={status.data} />
        <Outlet />
      </main>
      <Connection error={status.error} />
      <p className="sr-only" aria-live="polite">
        {news}
      </p>
    </div>
  );
}

function Navigation() {
  const waiting = useInfiniteQuery(queries.waiting);
  const number = waiting.data?.pages.reduce((sum, page) => sum + page.items.length, 0) ?? 0;
  return (
    <nav aria-label="Pages" className="w-full">
      <ul className="flex flex-wrap gap-x-1 lg:flex-col">
        {PAGES.map(([to, name]) => (
          <li key={to}>
            <Link
              to={to}
              activeOptions={{ exact: to === "/", includeSearch: false }}
              className="flex items-center justify-between gap-2 rounded-md px-2 py-1 hover:bg-track lg:py-1.5"
              activeProps={{ className: "bg-track font-semibold", "aria-current": "page" }}
            >
              {name}
              {to === "/inbox" && number > 0 ? (
                <Badge tone="busy">
                  {count(number)}
                  {waiting.hasNextPage ? "+" : ""}
                  <span className="sr-only"> waiting</span>
                </Badge>
              ) : null}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Banner({ status }: { status: queries.Status | undefined }) {
  if (!status) return null;
  const found = troubles(status);
  if (found.length === 0 && status.halts.length === 0) return null;
  return (
    <div className="mb-4 flex flex-col gap-3">
      {found.length > 0 ? (
        <Card title="Trouble: this needs a person" className="border-bad">
          <ul className="flex flex-col gap-1 text-sm">
            {found.slice(0, 10).map(({ kind, name, until, text }) => (
              <li key={`${kind} ${name}`}>
                <Badge tone="bad">{kind}</Badge> <Name className="font-medium">{name}</Name>: <Name>{text}</Name>
                {until ? (
                  <>
                    {" "}
                    <Time at={until} />
                  </>
                ) : null}
              </li>
            ))}
            {found.length > 10 ? <li>and {found.length - 10} more: see Administration</li> : null}
          </ul>
        </Card>
      ) : null}
      {status.halts.length > 0 ? (
        <Card title="Halted: nothing is started here" className="border-fair">
          <ul className="flex flex-col gap-1 text-sm">
            {status.halts.slice(0, 10).map((halt) => (
              <li key={`${halt.kind} ${halt.catalog ?? ""} ${halt.uuid ?? halt.name ?? ""}`}>
                <Badge tone="fair">{halt.state}</Badge> <Name>{haltWords(halt)}</Name>,{" "}
                <Time at={halt.since} relative />.{" "}
                {halt.running ? `${plural(halt.running, "attempt")} still at work.` : "Nothing is at work here."}
              </li>
            ))}
          </ul>
          <Link to="/queue" className="text-sm text-accent underline">
            Let it go on: Queue
          </Link>
        </Card>
      ) : null}
    </div>
  );
}

function Connection({ error }: { error: Error | null }) {
  const words =
    error === null
      ? "live"
      : error instanceof Away
        ? "The server does not answer; what is shown may be old."
        : "The server answers with an error; what is shown may be old.";
  return (
    <p
      id="connection"
      role="status"
      data-state={error === null ? "live" : "away"}
      className={
        error === null
          ? "sr-only"
          : "fixed right-4 bottom-4 z-10 max-w-[calc(100vw-2rem)] rounded-lg border border-bad bg-card px-4 py-2 text-bad"
      }
    >
      {words}
    </p>
  );
}

function Who() {
  const { data } = useQuery(queries.me);
  const out = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/logout")),
    onSuccess: ({ further }) => (further ? location.assign(further) : location.assign(import.meta.env.BASE_URL)),
  });
  if (!data) return null;
  const roles = data.grants.map(
    ({ role, scope }) => `${role} on ${[scope.catalog, ...scope.namespace].join(".") || "everything"}`,
  );
  return (
    <div className="flex flex-wrap items-center gap-2 text-sm">
      <span title={roles.join(", ")}>
        <Name>{data.shown || data.name}</Name>
      </span>
      <Button onClick={() => out.mutate()} disabled={out.isPending}>
        Log out
      </Button>
      {out.error ? <span className="text-bad">You are still logged in.</span> : null}
    </div>
  );
}

function ThemeChoice() {
  const [chosen, setChosen] = useState<Theme>(theme);
  return (
    <Select
      aria-label="Colours"
      value={chosen}
      onChange={(event) => {
        const wanted = event.target.value as Theme;
        applyTheme(wanted);
        setChosen(wanted);
      }}
    >
      {THEMES.map((each) => (
        <option key={each} value={each}>
          {each === "system" ? "Colours of the system" : each === "light" ? "Light" : "Dark"}
        </option>
      ))}
    </Select>
  );
}

function LogInPage() {
  useEffect(() => {
    document.title = "Log in · icewright";
  }, []);
  return (
    <main className="mx-auto flex max-w-2xl flex-col gap-4 p-6">
      <h1 className="text-xl font-semibold">Log in to icewright</h1>
      <p>You are not logged in. A log-in ends after twelve hours, and after half an hour without activity.</p>
      {hasProvider() ? (
        <Card title="With your organization's account">
          <a
            href="/login"
            onClick={keepPlace}
            className="inline-block rounded-md bg-accent px-4 py-1.5 font-medium text-on-accent"
          >
            Log in
          </a>
        </Card>
      ) : null}
      <Card title="With a link">
        <p>
          <Code>icewright login</Code> prints a link on the machine of <Code>icewright serve</Code>, and on each machine
          that is logged in to it with a token. A link works once, for a short time.
        </p>
      </Card>
      <p className="text-sm text-soft">
        If you have logged in by another tab, <Again /> this page.
      </p>
    </main>
  );
}

function Again() {
  return (
    <button type="button" className="text-accent underline" onClick={() => location.reload()}>
      reload
    </button>
  );
}

export function PageFailed({ error }: { error: Error }) {
  const router = useRouter();
  useEffect(() => {
    console.error(error);
  }, [error]);
  return (
    <div className="p-4">
      <h1 className="mb-3 text-xl font-semibold">This page has failed</h1>
      <Trouble error={error} again={() => void router.invalidate()} />
    </div>
  );
}
