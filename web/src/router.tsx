// Which address shows which page. Pages come when they are first asked for.

import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { PageFailed, Shell } from "./components/shell";
import { adminSearch, fleetSearch, policySearch, referenceSearch, tableSearch, tasksSearch } from "./lib/search";
import { NotFoundPage } from "./pages/not-found";

const root = createRootRoute({ component: Shell, notFoundComponent: NotFoundPage });

const fleetRoute = createRoute({
  getParentRoute: () => root,
  path: "/",
  validateSearch: fleetSearch,
  component: lazyRouteComponent(() => import("./pages/fleet"), "FleetPage"),
});
const tableRoute = createRoute({
  getParentRoute: () => root,
  path: "/tables/$uuid",
  validateSearch: tableSearch,
  component: lazyRouteComponent(() => import("./pages/table"), "TablePage"),
});
const inboxRoute = createRoute({
  getParentRoute: () => root,
  path: "/inbox",
  component: lazyRouteComponent(() => import("./pages/inbox"), "InboxPage"),
});
const planRoute = createRoute({
  getParentRoute: () => root,
  path: "/plans/$planId",
  component: lazyRouteComponent(() => import("./pages/plan"), "PlanPage"),
});
const tasksRoute = createRoute({
  getParentRoute: () => root,
  path: "/tasks",
  validateSearch: tasksSearch,
  component: lazyRouteComponent(() => import("./pages/tasks"), "TasksPage"),
});
const taskRoute = createRoute({
  getParentRoute: () => root,
  path: "/tasks/$taskId",
  component: lazyRouteComponent(() => import("./pages/task"), "TaskPage"),
});
const queueRoute = createRoute({
  getParentRoute: () => root,
  path: "/queue",
  component: lazyRouteComponent(() => import("./pages/queue"), "QueuePage"),
});
const benefitRoute = createRoute({
  getParentRoute: () => root,
  path: "/benefit",
  component: lazyRouteComponent(() => import("./pages/benefit"), "BenefitPage"),
});
const policiesRoute = createRoute({
  getParentRoute: () => root,
  path: "/policies",
  validateSearch: policySearch,
  component: lazyRouteComponent(() => import("./pages/policies"), "PoliciesPage"),
});
const administrationRoute = createRoute({
  getParentRoute: () => root,
  path: "/administration",
  validateSearch: adminSearch,
  component: lazyRouteComponent(() => import("./pages/administration"), "AdministrationPage"),
});

const referenceRoute = createRoute({
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
