/** Shows the state of a view: loading, empty, data, stale, failed, no permission, or with hidden parts. */
import { type ReactNode, useEffect, useState } from "react";
import type { CallFailed } from "../rpc/failure.ts";
import { Ago } from "./time.tsx";
import { type Queried, type Stale, viewState } from "./view-state.ts";

type ViewProps<T> = {
  readonly query: Queried<T> & { readonly refetch: () => unknown };
  /** What is loaded, such as "the jobs". */
  readonly what: string;
  readonly isEmpty?: (data: T) => boolean;
  /** Why nothing is there, and what to do next. */
  readonly empty?: ReactNode;
  readonly staleReason?: string;
  /** What the caller may not see of it. Empty: nothing is hidden. */
  readonly hidden?: string;
  readonly children: (data: T) => ReactNode;
};

export function View<T>({ query, what, isEmpty, empty, staleReason, hidden = "", children }: ViewProps<T>) {
  const state = viewState(query, isEmpty ?? (() => false), staleReason);
  switch (state.kind) {
    case "loading":
      return <Loading what={what} />;
    case "failed":
      return <Failed what={what} failure={state.failure} retry={() => query.refetch()} />;
    case "forbidden":
      return <Forbidden what={what} failure={state.failure} />;
    case "empty":
      return (
        <>
          <StaleNote stale={state.stale} />
          <div className="state">{empty}</div>
          <HiddenNote hidden={hidden} />
        </>
      );
    case "data":
      return (
        <>
          <StaleNote stale={state.stale} />
          {children(state.data)}
          <HiddenNote hidden={hidden} />
        </>
      );
  }
}

/** After this time a view says what it waits for. */
const LONG_MS = 10_000;

function Loading({ what }: { readonly what: string }) {
  const [isLong, setLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLong(true), LONG_MS);
    return () => clearTimeout(timer);
  }, []);
  const isPlain = window.location.protocol === "http:";
  return (
    <div className="state loading" role="status">
      <p>Loading {what} …</p>
      <div className="skeleton" />
      <div className="skeleton" />
      <div className="skeleton" />
      {isLong && (
        <p>
          The service has not answered for 10 seconds.
          {isPlain && " Without TLS a browser opens six connections at most: too many tabs of the console may be open."}
        </p>
      )}
    </div>
  );
}

type FailedProps = { readonly what: string; readonly failure: CallFailed; readonly retry?: () => unknown };

export function Failed({ what, failure, retry }: FailedProps) {
  return (
    <div className="state failed" role="alert">
      <h2>{failure.kind === "missing" ? "Not found" : `Cannot show ${what}`}</h2>
      <p>{failure.message}</p>
      {failure.requestId !== "" && (
        <p className="muted">
          Request <code>{failure.requestId}</code>
        </p>
      )}
      {retry !== undefined && (
        <button type="button" onClick={() => void retry()}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Forbidden({ what, failure }: { readonly what: string; readonly failure: CallFailed }) {
  return (
    <div className="state" role="alert">
      <h2>You may not see {what}</h2>
      <p>{failure.message}</p>
      {failure.permission !== "" && (
        <p>
          It needs the permission <code>{failure.permission}</code>
          {failure.scope !== "" && (
            <>
              {" "}
              in the scope <code>{failure.scope}</code>
            </>
          )}
          . An administrator gives it by a binding: <code>gangway binding create --help</code>
        </p>
      )}
      {failure.requestId !== "" && (
        <p className="muted">
          Request <code>{failure.requestId}</code>
        </p>
      )}
    </div>
  );
}

function StaleNote({ stale }: { readonly stale: Stale | null }) {
  if (stale === null) return null;
  return (
    <p className="note warning" role="status">
      {stale.sinceMs === null ? (
        "As last recorded"
      ) : (
        <>
          As it was <Ago atMs={stale.sinceMs} />
        </>
      )}
      : {stale.why}
    </p>
  );
}

function HiddenNote({ hidden }: { readonly hidden: string }) {
  return hidden === "" ? null : <p className="note">{hidden}</p>;
}
