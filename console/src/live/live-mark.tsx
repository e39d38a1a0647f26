/** Says whether what is shown follows the service. */
import type { LiveState } from "./use-jobs-watch.ts";

export function LiveMark({ state }: { readonly state: LiveState }) {
  switch (state.kind) {
    case "live":
      return <span className="live">live</span>;
    case "failed":
      return <span className="not-live">not live: {state.failure.message}</span>;
    case "paused":
      return <span className="not-live">paused</span>;
    case "reconnecting":
      return <span className="not-live">reconnecting</span>;
    case "connecting":
    case "idle":
      return <span className="not-live">connecting</span>;
  }
}
