// Which address shows which page. Pages come when they are first asked for.

import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { PageFailed, Shell } from "./components/shell";
import { adminSearch, fleetSearch, policySearch, referenceSearch, tableSearch, tasksSearch } from "./lib/search";
import { NotFoundPage } from "./pages/not-found";

const root = createRootRoute({ component: Shell, notFoundComponent: NotFoundPage });

export const fleetRoute = createRoute({
  getParentRoute: () => root,
  path: "/",
  validateSearch: fleetSearch,
  component: lazyRouteComponent(() => import("./pages/fleet"), "FleetPage"),
});
export const tableRoute = createRoute({
  getParentRoute: () => root,
  path: "/tables/$uuid",
  validateSearch: tableSearch,
  component: lazyRouteComponent(() => import("./pages/table"), "TablePage"),
});
export const inboxRoute = createRoute({
  getParentRoute: () => root,
  path: "/inbox",
  component: lazyRouteComponent(() => import("./pages/inbox"), "InboxPage"),
});
export const planRoute = createRoute({
  getParentRoute: () => root,
  path: "/plans/$planId",
  component: lazyRouteComponent(() => import("./pages/plan"), "PlanPage"),
});
export const tasksRoute = createRoute({
  getParentRoute: () => root,
  path: "/tasks",
  validateSearch: tasksSearch,
  component: lazyRouteComponent(() => import("./pages/tasks"), "TasksPage"),
});
export const taskRoute = createRoute({
  getParentRoute: () => root,
  path: "/tasks/$taskId",
  component: lazyRouteComponent(() => import("./pages/task"), "TaskPage"),
});
export const queueRoute = createRoute({
  getParentRoute: () => root,
  path: "/queue",
  component: lazyRouteComponent(() => import("./pages/queue"), "QueuePage"),
});
export const benefitRoute = createRoute({
  getParentRoute: () => root,
  path: "/benefit",
  component: lazyRouteComponent(() => import("./pages/benefit"), "BenefitPage"),
});
export const policiesRoute = createRoute({
  getParentRoute: () => root,
  path: "/policies",
  validateSearch: policySearch,
  component: lazyRouteComponent(() => import("./pages/policies"), "PoliciesPage"),
});
export const administrationRoute = createRoute({
  getParentRoute: () => root,
  path: "/administration",
  validateSearch: adminSearch,
  component: lazyRouteComponent(() => import("./pages/administration"), "AdministrationPage"),
});

export const referenceRoute = createRoute({
  getParentRoute: () => root,
  path: "/reference",
  validateSearch: referenceSearch,
  component: lazyRouteComponent(() => import("./pages/reference"), "ReferencePage"),
});

export const router = createRouter({
  routeTree: root.addChildren([
    fleetRoute,
    tableRoute,
    inboxRoute,
    planRoute,
    tasksRoute,
    taskRoute,
    queueRoute,
    benefitRoute,
    policiesRoute,
    administrationRoute,
    referenceRoute,
  ]),
  basepath: "/ui",
  scrollRestoration: true,
  defaultErrorComponent: ({ error }) => (
    <PageFailed error={error instanceof Error ? error : new Error(String(error))} />
  ),
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
