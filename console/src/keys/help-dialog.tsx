import { type RefObject, useId } from "react";

const KEYS: readonly (readonly [readonly string[], string])[] = [
  [["g", "o"], "Overview"],
  [["g", "j"], "Jobs"],
  [["/"], "Filter"],
  [["j"], "Next row"],
  [["k"], "Previous row"],
  [["Enter"], "Open the row"],
  [["Esc"], "Leave a field, close this"],
  [["?"], "These keys"],
];

export function HelpDialog({ dialog }: { readonly dialog: RefObject<HTMLDialogElement | null> }) {
  const id = useId();
  return (
    <dialog ref={dialog} aria-labelledby={id} className="help">
      <h2 id={id}>Keys</h2>
      <dl>
        {KEYS.map(([keys, does]) => (
          <div key={does}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
