/** The list of jobs. Its address is all of its state. */
import { type FormEvent, useCallback, useMemo, useState } from "react";
import { FILTER_ID } from "../../keys/page-keys.tsx";
import { LiveMark } from "../../live/live-mark.tsx";
import { View } from "../../parts/view.tsx";
import { goTo, Link } from "../../router/location.tsx";
import { JOBS_PATH, withQuery } from "../../router/path.ts";
import { useOwnName } from "../../rpc/use-own-name.ts";
import { completedFilters } from "./complete-filter.ts";
import { JobsGrid } from "./jobs-grid.tsx";
import {
  type JobsRequest,
  type JobsSearch,
  needsOwnName,
  ORDERS,
  PRESETS,
  readSearch,
  requestOf,
} from "./jobs-search.ts";
import { useJobs } from "./use-jobs.ts";

export function JobsView({ search }: { readonly search: URLSearchParams }) {
  const { q, sort } = readSearch(search);
  const asked = useMemo(() => ({ q, sort }), [q, sort]);
  const me = useOwnName({ enabled: needsOwnName(asked) });
  // Spans of the filter count from now, that is from when the reader asks.
  const request = useMemo(() => requestOf(asked, Date.now(), me.data ?? ""), [asked, me.data]);
  return (
    <main className="view jobs">
      <div className="toolbar">
        <h1>Jobs</h1>
        <Presets asked={asked} />
        <Filter asked={asked} />
        <Order asked={asked} />
      </div>
      {typeof request === "string" ? (
        <p className="note warning" role="alert">
          {request}
        </p>
      ) : needsOwnName(asked) && me.data === undefined ? (
        <View query={me} what="your name">
          {() => null}
        </View>
      ) : (
        <JobsList key={`${q} ${sort}`} request={request} asked={asked} />
      )}
    </main>
  );
}

function JobsList({ request, asked }: { readonly request: JobsRequest; readonly asked: JobsSearch }) {
  const { query, rows, live, newer, total, showNewer } = useJobs(JSON.stringify(asked), request);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const fetchMore = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  return (
    <View
      query={query}
      what="the jobs"
      isEmpty={({ pages }) => (pages[0]?.jobs.length ?? 0) === 0}
      empty={asked.q !== "" ? <NoMatch /> : <NoJobs />}
    >
      {() => (
        <>
          <div className="list-line" role="status">
            <span>{total === 1 ? "1 job" : `${total >= COUNTED_MAX ? `${COUNTED_MAX}+` : total} jobs`}</span>
            {newer > 0 && (
              <button type="button" className="new-rows" onClick={showNewer}>
                {newer} new
              </button>
            )}
            <LiveMark state={live} />
          </div>
          <JobsGrid rows={rows} total={total} showsNamespace={request.namespace === ""} fetchMore={fetchMore} />
        </>
      )}
    </View>
  );
}

/** The service counts no further. */
const COUNTED_MAX = 10_000;

function Presets({ asked }: { readonly asked: JobsSearch }) {
  return (
    <nav className="presets" aria-label="Presets">
      {PRESETS.map(({ label, q, sort }) => (
        <Link
          key={label}
          href={withQuery(JOBS_PATH, { q, sort })}
          aria-current={asked.q === q && asked.sort === sort ? "page" : undefined}
        >
          {label}
        </Link>
      ))}
    </nav>
  );
}

function Filter({ asked }: { readonly asked: JobsSearch }) {
  const [text, setText] = useState(asked.q);
  const [before, setBefore] = useState(asked.q);
  // Back, and links, change the address without the input.
  if (before !== asked.q) {
    setBefore(asked.q);
    setText(asked.q);
  }
  const apply = (event: FormEvent) => {
    event.preventDefault();
    goTo(withQuery(JOBS_PATH, { ...asked, q: text.trim() }));
  };
  return (
    <form className="filter" onSubmit={apply}>
      <input
        id={FILTER_ID}
        type="search"
        list="filters"
        aria-label="Filter"
        placeholder="phase:waiting queue:nlp+ owner:me age:>1d, or the beginning of a name"
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
      <datalist id="filters">
        {completedFilters(text).map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      <button type="submit">Filter</button>
    </form>
  );
}

function Order({ asked }: { readonly asked: JobsSearch }) {
  return (
    <select
      aria-label="Order"
      value={asked.sort}
      onChange={({ target }) => goTo(withQuery(JOBS_PATH, { ...asked, sort: target.value }))}
    >
      {Object.entries(ORDERS).map(([word, { label }]) => (
        <option key={word} value={word}>
          {label}
        </option>
      ))}
    </select>
  );
}

function NoMatch() {
  return (
    <>
      <h2>No job matches</h2>
      <p>
        No job passes this filter. <Link href={JOBS_PATH}>Show all jobs</Link>
      </p>
    </>
  );
}

function NoJobs() {
  return (
    <>
      <h2>No jobs yet</h2>
      <p>
        Submit one: <code>bin/gangway submit examples/walk/gpt-finetune.yaml</code>
      </p>
    </>
  );
}
