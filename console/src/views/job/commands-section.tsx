/** The same as this page by the command line, and what the page cannot do. */
import { CopyButton } from "../../parts/copy-button.tsx";
import type { JobName } from "../../router/path.ts";
import { commandsFor } from "./commands.ts";

export function CommandsSection({ name, hasEnded }: { readonly name: JobName; readonly hasEnded: boolean }) {
  return (
    <ul className="commands">
      {commandsFor(name, hasEnded).map(({ does, command }) => (
        <li key={command}>
          <span>{does}</span>
          <code>{command}</code>
          <CopyButton text={command} />
        </li>
      ))}
    </ul>
  );
}
