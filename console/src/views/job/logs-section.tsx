/** The logs of a job: of all replicas or of one, followed while it runs. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState } from "react";
import { Failed } from "../../parts/view.tsx";
import { goTo } from "../../router/location.tsx";
import { type JobName, jobPath, withQuery } from "../../router/path.ts";
import { found, LINES_KEPT_MAX, type LogBuffer } from "./log-buffer.ts";
import { type LogState, TAIL_LINES, useLogs } from "./use-logs.ts";

const LINE_PX = 18;
/** At most so many replicas can be chosen one by one. */
const CHOICES_MAX = 100;

type LogsProps = {
  readonly name: JobName;
  /** Such as Worker/0. Empty: all replicas. */
  readonly replica: string;
  readonly hasEnded: boolean;
  /** How many replicas each type has. */
  readonly replicas: Readonly<Record<string, number>>;
};

export function LogsSection({ name, replica, hasEnded, replicas }: LogsProps) {
  const [tries, setTries] = useState(0);
  const [text, setText] = useState("");
  const { buffer, state } = useLogs({ name, replica, follows: !hasEnded }, tries);
  const choose = (chosen: string) =>
    goTo(withQuery(jobPath(name), { tab: "logs", replica: chosen }), { replace: true });
  return (
    <section className="logs" aria-label="Logs">
      <div className="toolbar">
        <select aria-label="Replica" value={replica} onChange={({ target }) => choose(target.value)}>
          <option value="">All replicas</option>
          {choicesOf(replicas, replica).map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
        <input
          type="search"
          aria-label="Find in the lines"
          placeholder="find"
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
        <span className="muted" role="status">
          {stateText(state, buffer)}
        </span>
        {hasEnded && (
          <button type="button" onClick={() => setTries(tries + 1)}>
            Read again
          </button>
        )}
      </div>
      {state.kind === "failed" ? (
        <Failed what="the logs" failure={state.failure} retry={() => setTries(tries + 1)} />
      ) : (
        <Lines buffer={buffer} text={text} showsReplica={!replica.includes("/")} />
      )}
    </section>
  );
}

type LinesProps = { readonly buffer: LogBuffer; readonly text: string; readonly showsReplica: boolean };

function Lines({ buffer, text, showsReplica }: LinesProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const lines = found(buffer.lines, text);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_PX,
    getItemKey: (at) => lines[at]?.number ?? at,
    overscan: 20,
  });
  // The end stays in sight until the reader scrolls away from it.
  useEffect(() => {
    if (isAtEnd.current && lines.length > 0) virtual.scrollToIndex(lines.length - 1);
  }, [lines.length, virtual]);
  const scrolled = () => {
    const box = scroller.current;
    if (box !== null) isAtEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 2 * LINE_PX;
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: lines that scroll are reached by keys
    <div className="log-lines" ref={scroller} onScroll={scrolled} role="log" aria-live="off" tabIndex={0}>
      <div className="log-space" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, key, start }) => {
          const line = lines[index];
          return (
            <div
              key={key}
              ref={virtual.measureElement}
              data-index={index}
              className={line?.replica === "" ? "log-line log-note" : "log-line"}
              style={{ transform: `translateY(${start}px)` }}
            >
              {showsReplica && line?.replica !== "" && <span className="log-replica">{line?.replica}</span>}
              {line?.text}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function stateText(state: LogState, { lines, dropped }: LogBuffer): string {
  const count = lines.length === 1 ? "1 line" : `${lines.length} lines`;
  const kept = dropped === 0 ? count : `the last ${LINES_KEPT_MAX} lines; ${dropped} before them are not kept`;
  switch (state.kind) {
    case "connecting":
      return lines.length === 0 ? "waiting for the first line …" : kept;
    case "live":
      return `${kept} · live`;
    case "reconnecting":
      return `${kept} · the stream broke off: it begins again with the last ${TAIL_LINES} lines`;
    case "paused":
      return `${kept} · paused while the page is hidden`;
    case "ended":
      return `${kept} · at most the last ${TAIL_LINES} of each replica`;
    case "failed":
      return "";
  }
}

/** The types, and each replica while there are not too many. */
function choicesOf(replicas: Readonly<Record<string, number>>, chosen: string): readonly string[] {
  const types = Object.keys(replicas).sort();
  const single = types.flatMap((type) =>
    Array.from({ length: Math.min(CHOICES_MAX, replicas[type] ?? 0) }, (_, at) => `${type}/${at}`),
  );
  const choices = [...types, ...single.slice(0, CHOICES_MAX)];
  return chosen === "" || choices.includes(chosen) ? choices : [...choices, chosen];
}
