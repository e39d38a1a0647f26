/** The list of jobs. Its address is all of its state. */
import { type FormEvent, useCallback } from "react";
import { FILTER_ID } from "../../keys/page-keys.tsx";
import { LiveMark } from "../../live/live-mark.tsx";
import { View } from "../../parts/view.tsx";
import { goTo, Link } from "../../router/location.tsx";
import { JOBS_PATH, withQuery } from "../../router/path.ts";
import { JobsGrid } from "./jobs-grid.tsx";
import { type JobsSearch, ORDERS, PRESETS, readSearch, requestOf } from "./jobs-search.ts";
import { useJobs } from "./use-jobs.ts";

export function JobsView({ search }: { readonly search: URLSearchParams }) {
  const asked = readSearch(search);
  const request = tried(() => requestOf(asked));
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
      ) : (
        <JobsList request={request} asked={asked} />
      )}
    </main>
  );
}

type Request = ReturnType<typeof requestOf>;

function JobsList({ request, asked }: { readonly request: Request; readonly asked: JobsSearch }) {
  const { query, rows, live, newer, total, showNewer } = useJobs(request);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const fetchMore = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const isFiltered = Object.values({ ...asked, sort: "" }).some((value) => value !== "");
  return (
    <View
      query={query}
      what="the jobs"
      isEmpty={({ pages }) => (pages[0]?.jobs.length ?? 0) === 0}
      empty={isFiltered ? <NoMatch /> : <NoJobs />}
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
          <JobsGrid rows={rows} total={total} showsNamespace={asked.namespace === ""} fetchMore={fetchMore} />
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
      {PRESETS.map(({ label, phase }) => (
        <Link
          key={label}
          href={withQuery(JOBS_PATH, { ...asked, phase })}
          aria-current={asked.phase === phase ? "page" : undefined}
        >
          {label}
        </Link>
      ))}
    </nav>
  );
}

const FIELDS = ["namespace", "queue", "name"] as const;

function Filter({ asked }: { readonly asked: JobsSearch }) {
  const apply = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const given = Object.fromEntries(FIELDS.map((field) => [field, String(form.get(field) ?? "").trim()]));
    goTo(withQuery(JOBS_PATH, { ...asked, ...given }));
  };
  return (
    <form className="filter" onSubmit={apply} key={JSON.stringify(asked)}>
      {FIELDS.map((field, at) => (
        <input
          key={field}
          id={at === 0 ? FILTER_ID : undefined}
          name={field}
          defaultValue={asked[field]}
          placeholder={field}
          aria-label={field}
        />
      ))}
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

function tried<T>(make: () => T): T | string {
  try {
    return make();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
