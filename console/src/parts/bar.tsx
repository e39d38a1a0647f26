/** How much of something is held. The numbers stand beside it. */

type BarProps = { readonly held: number; readonly all: number; readonly what: string };

export function Bar({ held, all, what }: BarProps) {
  const part = all === 0 ? 0 : Math.min(1, held / all);
  return (
    <span className="bar-line">
      <span className={held > all ? "bar is-over" : "bar"} aria-hidden="true">
        <span style={{ width: `${100 * part}%` }} />
      </span>
      <span title={`${held} of ${all} ${what}`}>
        {held} of {all}
      </span>
    </span>
  );
}
