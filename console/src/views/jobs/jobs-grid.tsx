/**
 * The list of jobs as a grid, of which only the rows in sight exist. So its parts have roles in place of the elements
 * of a table, which needs all of its rows.
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { moveOf } from "../../keys/list-keys.ts";
import { PhaseBadge } from "../../parts/job-badge.tsx";
import { type JobSummary, summaryOf } from "../../parts/job-summary.ts";
import { Age } from "../../parts/time.tsx";
import { goTo, Link } from "../../router/location.tsx";
import type { JobRow } from "./use-jobs.ts";

const COLUMNS = ["Name", "Phase", "Pods", "Why", "Queue", "Priority", "GPUs", "Cluster", "Owner", "Age"];
/** The height of a row, and of a card on a narrow page; then each is measured. */
const ROW_PX = 34;
const OVERSCAN = 10;
/** So many rows before the end the next page is fetched. */
const FETCH_BEFORE = 30;

type GridProps = {
  readonly rows: readonly JobRow[];
  readonly total: number;
  readonly showsNamespace: boolean;
  readonly fetchMore: () => void;
};

export function JobsGrid({ rows, total, showsNamespace, fetchMore }: GridProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(0);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    getItemKey: (at) => rows[at]?.job.metadata?.uid ?? at,
    overscan: OVERSCAN,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (rows.length > 0 && last >= rows.length - FETCH_BEFORE) fetchMore();
  }, [last, rows.length, fetchMore]);
  const focus = (at: number) => {
    setActive(at);
    virtual.scrollToIndex(at);
    requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>(`[data-index="${at}"]`)?.focus());
  };
  useEffect(() => {
    const listen = (event: globalThis.KeyboardEvent) => {
      const to = moveOf(event, { at: active, count: rows.length });
      if (to === null) return;
      event.preventDefault();
      focus(scroller.current?.contains(document.activeElement) === true ? to : active);
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  });
  const open = (event: KeyboardEvent, href: string) => {
    if (event.key === "Enter" && event.target === event.currentTarget) goTo(href);
  };
  return (
    <div className="grid" role="grid" aria-label="Jobs" aria-rowcount={Math.max(total, rows.length) + 1}>
      <div className="grid-row grid-head" role="row" aria-rowindex={1} tabIndex={-1}>
        {COLUMNS.map((title) => (
          <div key={title} role="columnheader" tabIndex={-1} className={`cell-${title.toLowerCase()}`}>
            {title}
          </div>
        ))}
      </div>
      <div className="grid-body" ref={scroller} role="rowgroup">
        <div className="grid-space" role="presentation" style={{ height: virtual.getTotalSize() }}>
          {items.map(({ index, key, start }) => {
            const row = rows[index];
            if (row === undefined) return null;
            const summary = summaryOf(row.job);
            return (
              <div
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                role="row"
                aria-rowindex={index + 2}
                tabIndex={index === active ? 0 : -1}
                className={row.isGone ? "grid-row is-gone" : "grid-row"}
                style={{ transform: `translateY(${start}px)` }}
                onFocus={() => setActive(index)}
                onKeyDown={(event) => open(event, summary.href)}
              >
                <Cells summary={summary} isGone={row.isGone} showsNamespace={showsNamespace} />
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

type CellsProps = { readonly summary: JobSummary; readonly isGone: boolean; readonly showsNamespace: boolean };

function Cells({ summary, isGone, showsNamespace }: CellsProps) {
  const { name, namespace, href, phase, pods, why, queue, priority, devices, cluster, isSimulated, owner } = summary;
  const place = why !== null && why.position > 0 ? ` #${why.position}` : "";
  return (
    <>
      <Cell of="name">
        {showsNamespace && <span className="muted">{namespace}/</span>}
        <Link href={href} tabIndex={-1} title={name}>
          {name}
        </Link>
      </Cell>
      <Cell of="phase">
        {isGone ? <span className="phase tone-quiet">deleted</span> : <PhaseBadge phase={phase} />}
      </Cell>
      <Cell of="pods">{summary.hasEnded ? "" : pods}</Cell>
      <Cell of="why">
        {why !== null && (
          <span title={`${why.reason} ${why.message}`}>
            {why.reason !== "" && <b>{why.reason}</b>} <span className="muted">{why.message}</span>
          </span>
        )}
      </Cell>
      <Cell of="queue">
        {queue}
        {place !== "" && <b>{place}</b>}
      </Cell>
      <Cell of="priority">{priority}</Cell>
      <Cell of="gpus">{devices}</Cell>
      <Cell of="cluster">
        {cluster}
        {isSimulated && <span className="muted"> sim</span>}
      </Cell>
      <Cell of="owner">
        <span title={owner}>{owner}</span>
      </Cell>
      <Cell of="age">
        <Age atMs={summary.createdMs} />
      </Cell>
    </>
  );
}

function Cell({ of, children }: { readonly of: string; readonly children: React.ReactNode }) {
  return (
    <div role="gridcell" tabIndex={-1} className={`cell-${of}`}>
      {children}
    </div>
  );
}
