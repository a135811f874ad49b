import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { isAway, Refused, SignedOut, watchAttendance } from "./api/client";
import { setSignedOut } from "./lib/session";
import { applyTheme } from "./lib/theme";
import { router } from "./router";
import "./style.css";

const hear = (error: Error) => {
  if (error instanceof SignedOut) setSignedOut();
};

const AGAIN_MS = 5_000;

const client = new QueryClient({
  queryCache: new QueryCache({ onError: hear }),
  mutationCache: new MutationCache({ onError: hear }),
  defaultOptions: {
    queries: {
      // What was refused once is refused again; where nobody answers, the next interval asks, of each query that has
      // none of its own this one.
      refetchInterval: ({ state }) => (isAway(state.error) ? AGAIN_MS : false),
      retry: (failures, error) => !(error instanceof Refused) && !(error instanceof SignedOut) && failures < 1,
      networkMode: "always",
      staleTime: 1_000,
    },
    mutations: { networkMode: "always" },
  },
});

// A one-time link ends at the root of the server, whose pages begin here.
if (location.pathname === "/") history.replaceState(null, "", import.meta.env.BASE_URL);
applyTheme();
watchAttendance();
const root = document.getElementById("root");
if (!root) throw new Error("the document has no root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
