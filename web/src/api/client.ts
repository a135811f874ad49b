// The typed client of the API: what is asked, what came back, and the three ways in which nothing did.

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.gen";

/** What the server answers has all of its fields: the schema leaves out of `required` what a request need not say. */
type Whole<T> = T extends (infer U)[] ? Whole<U>[] : T extends object ? { [K in keyof T]-?: Whole<T[K]> } : T;

export type Schemas = { [K in keyof components["schemas"]]: Whole<components["schemas"][K]> };
export type Amount = Schemas["Amount"];
export type Storage = Schemas["StorageView"];
export type Bounds = Schemas["BoundsView"];
export type BoundsItem = Bounds["items"][number];
export type Bucket = Schemas["SizeBucket"];
export type DataFile = Schemas["FileView"];
export type Histogram = Schemas["HistogramView"];
export type Sample = Schemas["SeriesPoint"];

/** The server answered that it will not, with its own words. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;

  constructor(status: number, document: { detail?: string; title?: string; code?: string; hint?: string } | undefined) {
    super(document?.detail ?? document?.title ?? `status ${status}`);
    this.status = status;
    this.code = document?.code ?? "";
    this.hint = document?.hint ?? "";
  }
}

/** Nobody is signed in, or the log-in has ended. */
export class SignedOut extends Error {}

/** No answer came. */
export class Away extends Error {}

const UNAVAILABLE = 503;

/** Whether asking again may help: nobody answered, or the server said that what it needs does not answer. */
export function isAway(error: Error | null): boolean {
  return error instanceof Away || (error instanceof Refused && error.status === UNAVAILABLE);
}

const TIMEOUT_MS = 30_000;
const ATTENDED_MS = 60_000;
let attendedAt = Date.now();

/** Asking by itself keeps no session alive: only somebody who does something on the page does. */
export function watchAttendance(): void {
  for (const kind of ["pointerdown", "keydown", "wheel", "touchstart"]) {
    addEventListener(
      kind,
      () => {
        attendedAt = Date.now();
      },
      { passive: true },
    );
  }
}

export function attendance(): Record<string, string> {
  return Date.now() - attendedAt < ATTENDED_MS ? {} : { "Icewright-Unattended": "1" };
}

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** 64-bit integers that JavaScript cannot hold become texts with the same digits. */
export function keepDigits(text: string): string {
  if (!/\d{16}/.test(text)) return text;
  return text.replace(TOKEN, (token) =>
    /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token,
  );
}

async function send(request: Request): Promise<Response> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(request, { cache: "no-store" });
    text = await response.text();
  } catch (error) {
    if (
      request.signal.aborted &&
      !(request.signal.reason instanceof DOMException && request.signal.reason.name === "TimeoutError")
    )
      throw error;
    throw new Away(String(error));
  }
  if (response.status === 401) throw new SignedOut();
  const isJson = response.headers.get("content-type")?.includes("json") ?? false;
  if (response.status !== 204 && !isJson) throw new Away(`status ${response.status}`);
  return new Response(response.status === 204 ? null : response.ok ? keepDigits(text) : text, {
    status: response.status,
    headers: response.headers,
  });
}

function freshKey(): string {
  const drawn = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(drawn, (each) => each.toString(16).padStart(2, "0")).join("");
}

export const api = createClient<paths>({ baseUrl: globalThis.location?.origin ?? "", fetch: send });
api.use({
  onRequest({ request }) {
    for (const [name, value] of Object.entries(attendance())) request.headers.set(name, value);
    if (request.method === "POST" && !request.headers.has("Idempotency-Key"))
      request.headers.set("Idempotency-Key", freshKey());
    return new Request(request, { signal: AbortSignal.any([request.signal, AbortSignal.timeout(TIMEOUT_MS)]) });
  },
});

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** What was answered, or a `Refused`. */
export async function answer<T>(asked: Promise<Answer<T>>): Promise<Whole<T>> {
  const { data, error, response } = await asked;
  if (!response.ok) throw new Refused(response.status, error as Schemas["ProblemDocument"] | undefined);
  return data as Whole<T>;
}

/** As `answer`, together with its tag: for a change that is meant for this version alone. */
export async function tagged<T>(asked: Promise<Answer<T>>): Promise<{ value: Whole<T>; tag: string | null }> {
  const given = await asked;
  if (!given.response.ok)
    throw new Refused(given.response.status, given.error as Schemas["ProblemDocument"] | undefined);
  return { value: given.data as Whole<T>, tag: given.response.headers.get("etag") };
}

/** A document that the document of the API does not describe: itself. */
export async function document<T>(path: string, signal: AbortSignal): Promise<T> {
  const asked = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const response = await send(new Request(new URL(path, location.origin), { signal: asked, headers: attendance() }));
  const found: unknown = await response.json();
  if (!response.ok) throw new Refused(response.status, found as Schemas["ProblemDocument"] | undefined);
  return found as T;
}
