/** What happened to a job, the newest first. */
import type { JobEvent } from "../../../../src/gen/gangway/v1/job_service_pb.ts";
import { Table, type TableColumn } from "../../parts/table.tsx";
import { Ago } from "../../parts/time.tsx";
import { msOf } from "../../parts/time-text.ts";
import { View } from "../../parts/view.tsx";
import type { JobName } from "../../router/path.ts";
import { useEvents } from "./use-job.ts";

export function EventsSection({ name }: { readonly name: JobName }) {
  const query = useEvents(name);
  return (
    <View
      query={query}
      what="the events"
      isEmpty={({ events }) => events.length === 0}
      empty={<p>Nothing was recorded, or the events of this job are older than the event log.</p>}
      hidden={query.data?.isCut ? `The job has more events: these are the first ${query.data.events.length}.` : ""}
    >
      {({ events }) => <Table columns={COLUMNS} rows={numbered(events)} keyOf={({ number }) => number} />}
    </View>
  );
}

/** An event, and its number from the oldest on. */
type Numbered = { readonly event: JobEvent; readonly number: number };

/** Events have no names. New ones come first, so that places from the end stay. */
function numbered(events: readonly JobEvent[]): readonly Numbered[] {
  return events.map((event, at) => ({ event, number: events.length - at }));
}

const COLUMNS: readonly TableColumn<Numbered>[] = [
  { title: "When", cell: ({ event }) => <Ago atMs={msOf(event.time) ?? 0} /> },
  {
    title: "Type",
    cell: ({ event }) => (event.type === "Warning" ? <b className="warning-word">Warning</b> : event.type),
  },
  { title: "Reason", cell: ({ event }) => event.reason },
  { title: "Message", kind: "long", cell: ({ event }) => event.message },
];
