import { QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";
import { HelpDialog } from "./keys/help-dialog.tsx";
import { usePageKeys } from "./keys/page-keys.tsx";
import { Link, useLocation } from "./router/location.tsx";
import { JOBS_PATH, OVERVIEW_PATH, type Route, routeOf } from "./router/path.ts";
import { isPassing } from "./rpc/failure.ts";
import { useSession } from "./rpc/session.ts";
import { Caller } from "./views/caller.tsx";
import { JobView } from "./views/job/job-view.tsx";
import { JobsView } from "./views/jobs/jobs-view.tsx";
import { LoginView } from "./views/login-view.tsx";
import { OverviewView } from "./views/overview/overview-view.tsx";

/** A call that failed because the service is away is repeated so often before a view says so. */
const RETRIES = 2;

const client = new QueryClient({
  queryCache: new QueryCache(),
  defaultOptions: {
    queries: {
      retry: (count, cause) => count < RETRIES && isPassing(cause),
      // The page says itself how old its data are.
      networkMode: "always",
      staleTime: 5_000,
    },
  },
});

export function App() {
  const { path, search } = useLocation();
  const { isSignedOut, otherVersion } = useSession();
  const help = useRef<HTMLDialogElement>(null);
  usePageKeys(useCallback(() => help.current?.showModal(), []));
  const route = routeOf(path);
  useEffect(() => {
    document.title = titleOf(route);
  });
  return (
    <QueryClientProvider client={client}>
      <header className="top">
        <Link href={OVERVIEW_PATH} className="brand">
          Gangway
        </Link>
        <nav aria-label="Views">
          <Link href={OVERVIEW_PATH} aria-current={route.view === "overview" ? "page" : undefined}>
            Overview
          </Link>
          <Link href={JOBS_PATH} aria-current={route.view === "jobs" || route.view === "job" ? "page" : undefined}>
            Jobs
          </Link>
        </nav>
        {otherVersion !== "" && (
          <button type="button" className="reload" onClick={() => window.location.reload()}>
            Gangway {otherVersion} runs now: reload
          </button>
        )}
        <Caller />
        <button type="button" className="help-button" aria-label="Keys" onClick={() => help.current?.showModal()}>
          ?
        </button>
      </header>
      {isSignedOut ? <LoginView /> : <Shown route={route} search={search} />}
      <HelpDialog dialog={help} />
    </QueryClientProvider>
  );
}

function Shown({ route, search }: { readonly route: Route; readonly search: URLSearchParams }) {
  switch (route.view) {
    case "overview":
      return <OverviewView />;
    case "jobs":
      return <JobsView search={search} />;
    case "job":
      return <JobView key={`${route.namespace}/${route.name}`} {...route} search={search} />;
    case "unknown":
      return (
        <main className="view">
          <div className="state">
            <h1>There is no such page</h1>
            <p>
              <Link href={JOBS_PATH}>Show all jobs</Link>
            </p>
          </div>
        </main>
      );
  }
}

function titleOf(route: Route): string {
  switch (route.view) {
    case "overview":
      return "Overview · Gangway";
    case "jobs":
      return "Jobs · Gangway";
    case "job":
      return `${route.name} · Gangway`;
    case "unknown":
      return "No such page · Gangway";
  }
}
