// The small parts that all pages are made of.

import { type ComponentProps, type ReactNode, useId, useLayoutEffect, useRef, useState } from "react";
import { Away, isAway, Refused } from "../api/client";
import { ago, instant, utc, visible } from "../lib/format";
import { useNow } from "../lib/now";

type Tone = "plain" | "good" | "fair" | "bad" | "busy";

const TONES: Record<Tone, string> = {
  plain: "border-line text-soft",
  good: "border-good text-good",
  fair: "border-fair text-fair",
  bad: "border-bad text-bad",
  busy: "border-accent text-accent",
};

export function classes(...names: (string | false | null | undefined)[]): string {
  return names.filter(Boolean).join(" ");
}

const BUTTON =
  "inline-flex min-h-8 items-center justify-center gap-1.5 rounded-md px-3 py-1 text-sm font-medium disabled:cursor-not-allowed disabled:opacity-60";
const BUTTONS = {
  plain: "border border-soft bg-card hover:bg-track",
  main: "bg-accent text-on-accent hover:opacity-90",
  danger: "border border-bad bg-card text-bad hover:bg-track",
};

export function Button({
  look = "plain",
  className,
  ...rest
}: ComponentProps<"button"> & { look?: keyof typeof BUTTONS }) {
  return <button type="button" className={classes(BUTTON, BUTTONS[look], className)} {...rest} />;
}

export function Badge({ tone = "plain", children }: { tone?: Tone; children: ReactNode }) {
  return (
    <span
      className={classes(
        "inline-block rounded-full border px-2 text-xs leading-5 font-medium whitespace-nowrap",
        TONES[tone],
      )}
    >
      {children}
    </span>
  );
}

/** A text from outside. It is a text node whatever it is made of. */
export function Name({ children, className }: { children: string; className?: string }) {
  return (
    <span className={classes("[overflow-wrap:anywhere]", className)} dir="ltr">
      {visible(children)}
    </span>
  );
}

export function Card({
  title,
  actions,
  children,
  className,
}: {
  title?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  className?: string;
}) {
  const id = useId();
  return (
    <section
      aria-labelledby={title ? id : undefined}
      className={classes("min-w-0 rounded-lg border border-line bg-card p-4", className)}
    >
      {title ? (
        <div className="mb-2 flex flex-wrap items-center gap-x-3 gap-y-1">
          <h2 id={id} className="flex-1 text-base font-semibold">
            {title}
          </h2>
          {actions}
        </div>
      ) : null}
      {children}
    </section>
  );
}

export function PageHeading({ title, children }: { title: ReactNode; children?: ReactNode }) {
  return (
    <div className="mb-4 flex flex-wrap items-center gap-x-4 gap-y-2">
      <h1 className="min-w-0 flex-1 text-xl font-semibold">{title}</h1>
      {children}
    </div>
  );
}

/** Figures beside each other, each with what it is. */
export function Figures({ items }: { items: { name: string; value: ReactNode; tone?: Tone; note?: ReactNode }[] }) {
  return (
    <dl className="grid grid-cols-2 gap-3 sm:grid-cols-[repeat(auto-fit,minmax(9rem,1fr))]">
      {items.map((item) => (
        <div key={item.name} className="rounded-lg border border-line bg-card px-3 py-2">
          <dt className="text-sm text-soft">{item.name}</dt>
          <dd
            className={classes(
              "text-xl font-semibold tabular-nums [overflow-wrap:anywhere]",
              item.tone && item.tone !== "plain" && TONES[item.tone],
            )}
          >
            {item.value}
          </dd>
          {item.note ? <dd className="text-sm text-soft">{item.note}</dd> : null}
        </div>
      ))}
    </dl>
  );
}

/** Names and values below each other. */
export function Facts({ items, verbatim = false }: { items: [string, ReactNode][]; verbatim?: boolean }) {
  return (
    <dl className="grid grid-cols-1 gap-x-4 gap-y-1 text-sm sm:grid-cols-[max-content_1fr]">
      {items.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className={classes("min-w-0 text-soft [overflow-wrap:anywhere]", !verbatim && "first-letter:uppercase")}>
            {name}
          </dt>
          <dd className="mb-1 min-w-0 [overflow-wrap:anywhere] sm:mb-0">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A moment in the reader's own time; in UTC on hovering. */
export function Time({ at, relative = false }: { at: number | null | undefined; relative?: boolean }) {
  const now = useNow();
  if (at === null || at === undefined) return <span className="text-soft">never</span>;
  return (
    <time dateTime={new Date(at).toISOString()} title={relative ? `${instant(at)} (${utc(at)})` : utc(at)}>
      {relative ? ago(at, now) : instant(at)}
    </time>
  );
}

export function Waiting({ what }: { what: string }) {
  return (
    <p role="status" className="p-4 text-soft">
      Loading {what}…
    </p>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return <p className="rounded-lg border border-dashed border-line p-4 text-soft">{children}</p>;
}

export function Trouble({ error, again }: { error: Error; again?: () => void }) {
  const said =
    error instanceof Away
      ? "The server does not answer."
      : error instanceof Refused
        ? error.message
        : "This page has failed. Load it again.";
  return (
    <div role="alert" className="rounded-lg border border-bad bg-card p-4">
      <p className="text-bad [overflow-wrap:anywhere]">{visible(said)}</p>
      {again && isAway(error) ? (
        <p className="text-sm">This page keeps asking.</p>
      ) : error instanceof Refused && error.hint ? (
        <p className="text-sm">{visible(error.hint)}</p>
      ) : null}
      {again && !isAway(error) ? (
        <Button className="mt-2" onClick={again}>
          Try again
        </Button>
      ) : null}
    </div>
  );
}

/** Why a query has no answer. Where asking again may help it stays until there is one, also while that is awaited. */
export function useTrouble(query: { data: unknown; error: Error | null }): Error | null {
  const [failed, setFailed] = useState(query.error);
  if (query.error && query.error !== failed) setFailed(query.error);
  return query.error ?? (query.data === undefined && isAway(failed) ? failed : null);
}

/** What a query has: its data, that it is on the way, or why it is not. */
export function Loaded<T>({
  query,
  what,
  children,
}: {
  query: { data: T | undefined; error: Error | null; refetch: () => unknown };
  what: string;
  children: (data: T) => ReactNode;
}) {
  const error = useTrouble(query);
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (error) return <Trouble error={error} again={() => void query.refetch()} />;
  return <Waiting what={what} />;
}

/** A modal dialogue: the browser's own, which keeps the focus and closes with Escape. */
export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ReactNode }) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close(); // the focus goes back to where it was
  }, []);
  return (
    <dialog
      ref={ref}
      onClose={onClose}
      aria-labelledby={id}
      className="w-[min(34rem,calc(100vw-2rem))] rounded-lg border border-line bg-card p-5 text-ink"
    >
      <h2 id={id} className="mb-3 text-lg font-semibold">
        {title}
      </h2>
      {children}
    </dialog>
  );
}

export function Field({ label, children }: { label: string; children: (id: string) => ReactNode }) {
  const id = useId();
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="text-sm text-soft">
        {label}
      </label>
      {children(id)}
    </div>
  );
}

const INPUT = "min-h-8 rounded-md border border-soft bg-card px-2 py-1 text-sm";

export function Input({ className, ...rest }: ComponentProps<"input">) {
  return <input className={classes(INPUT, className)} {...rest} />;
}

export function Select({ className, ...rest }: ComponentProps<"select">) {
  return <select className={classes(INPUT, className)} {...rest} />;
}

export function TextArea({ className, ...rest }: ComponentProps<"textarea">) {
  return <textarea className={classes(INPUT, "font-mono", className)} {...rest} />;
}

/** Health in words and a number; the colour only repeats it. */
export function HealthBadge({ health }: { health: { score: number; grade: string } | null | undefined }) {
  if (!health) return <Badge>not known</Badge>;
  return (
    <Badge tone={toneOf(health.grade)}>
      {health.score} {health.grade}
    </Badge>
  );
}

export function toneOf(grade: string): Tone {
  return grade === "good" ? "good" : grade === "fair" ? "fair" : grade === "poor" ? "bad" : "plain";
}

export function Progress({ done, total, label }: { done: number; total: number; label: string }) {
  return (
    <div>
      <progress className="h-2 w-full accent-accent" max={Math.max(1, total)} value={done} aria-label={label} />
      <p className="text-sm text-soft">{label}</p>
    </div>
  );
}

export function Code({ children }: { children: string }) {
  return <code className="[overflow-wrap:anywhere]">{visible(children)}</code>;
}

/** Copies a text. A browser that lets no page do that leaves it to be selected. */
export function Copy({ text }: { text: string }) {
  const [said, setSaid] = useState("");
  const copy = () =>
    navigator.clipboard
      ? navigator.clipboard.writeText(text).then(
          () => setSaid("Copied"),
          () => setSaid("Not copied: select it instead"),
        )
      : setSaid("Not copied: select it instead");
  return (
    <>
      <span role="status" className="self-center text-sm text-soft">
        {said}
      </span>
      <Button onClick={() => void copy()}>Copy</Button>
    </>
  );
}
