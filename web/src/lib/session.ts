// Whether somebody is signed in, as far as the server has said.

import { useSyncExternalStore } from "react";

let isSignedOut = false;
const listeners = new Set<() => void>();
const NEXT = "icewright-next";

export function setSignedOut(): void {
  if (isSignedOut) return;
  isSignedOut = true;
  for (const listener of listeners) listener();
}

export function useSignedOut(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => isSignedOut,
  );
}

/** Where somebody wanted to go before they were asked to log in. */
export function keepPlace(): void {
  sessionStorage.setItem(NEXT, location.pathname + location.search);
}

/** That place, once. Nothing but a page of these. */
export function takePlace(): string | null {
  const place = sessionStorage.getItem(NEXT);
  sessionStorage.removeItem(NEXT);
  return place !== null && /^\/ui\/[^/\\]/.test(place) ? place : null;
}

/** Whether people may log in by a provider here, as the server wrote into the page. */
export function hasProvider(): boolean {
  return document.querySelector<HTMLMetaElement>('meta[name="icewright-login"]')?.content === "provider";
}
