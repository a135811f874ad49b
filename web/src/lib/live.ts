// The server's own telling: facts of the feed as they become true, after which what is shown is asked for anew.

import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { attendance, type Schemas } from "../api/client";

const AGAIN_MS = 5_000;
const AGAIN_MAX_MS = 60_000;
const TOGETHER_MS = 300;

export type Fact = Schemas["FactView"];

/** The events of a stream of text, and what is left of it that is not complete yet. */
export function eventsOf(text: string): { events: { id: string; data: string }[]; rest: string } {
  const parts = text.replaceAll("\r\n", "\n").split("\n\n");
  const rest = parts.pop() ?? "";
  const events = parts.flatMap((part) => {
    const lines = part.split("\n");
    const of = (name: string) =>
      lines
        .filter((line) => line.startsWith(`${name}:`))
        .map((line) => line.slice(name.length + 1).replace(/^ /, ""))
        .join("\n");
    const data = of("data");
    return data ? [{ id: of("id"), data }] : [];
  });
  return { events, rest };
}

async function follow(after: { id: string }, signal: AbortSignal, hear: (fact: Fact) => void): Promise<void> {
  const headers: Record<string, string> = { Accept: "text/event-stream", ...attendance() };
  if (after.id) headers["Last-Event-ID"] = after.id;
  const response = await fetch("/api/v1/feed/stream", { headers, signal, cache: "no-store" });
  if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const { events, rest } = eventsOf(text + value);
    text = rest;
    for (const event of events) {
      if (event.id) after.id = event.id;
      hear(JSON.parse(event.data) as Fact);
    }
  }
}

/** Follow the feed while the page is looked at; what it tells last, in words. */
export function useLive(): string {
  const client = useQueryClient();
  const [news, setNews] = useState("");
  useEffect(() => {
    const after = { id: "" };
    let pause = AGAIN_MS;
    let running: AbortController | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let together: ReturnType<typeof setTimeout> | undefined;
    let told: string[] = [];
    const hear = (fact: Fact) => {
      pause = AGAIN_MS;
      if (typeof fact.kind === "string")
        told.push(`${fact.table ?? fact.catalog}: ${fact.kind.replaceAll("-", " ")}. ${fact.reason.text}`);
      together ??= setTimeout(() => {
        together = undefined;
        setNews(told.slice(-3).join(" "));
        told = [];
        for (const key of ["status", "tasks", "plans", "tables", "feed", "groups"])
          void client.invalidateQueries({ queryKey: [key] });
      }, TOGETHER_MS);
    };
    const begin = () => {
      clearTimeout(timer);
      if (document.hidden || running) return;
      const mine = new AbortController();
      running = mine;
      const again = () => {
        if (running !== mine) return;
        running = null;
        timer = setTimeout(begin, pause);
        pause = Math.min(AGAIN_MAX_MS, pause * 2);
      };
      // Without the feed what is shown is asked for at intervals, as each query says.
      follow(after, mine.signal, hear).then(again, again);
    };
    const end = () => {
      running?.abort();
      running = null;
      clearTimeout(timer);
    };
    const look = () => (document.hidden ? end() : begin());
    document.addEventListener("visibilitychange", look);
    begin();
    return () => {
      document.removeEventListener("visibilitychange", look);
      clearTimeout(together);
      end();
    };
  }, [client]);
  return news;
}
