// The server's clock, as seen from here: what was said at which time is told by it, and not by the reader's.

import { useSyncExternalStore } from "react";

let offset = 0;
let now = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  now = Math.floor((Date.now() + offset) / 1000) * 1000;
  for (const listener of listeners) listener();
}

/** What the server says that time it is. */
export function serverTime(at: number): void {
  offset = at - Date.now();
  tick();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(tick, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}
